// Memory that the ranks of one host share.
#include "convoy/comm/shared_memory/host_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/groups.h"

namespace convoy::comm {
namespace {

using testing::with_groups;

// A state file as the launcher makes it.
class StateFile {
 public:
  StateFile() : descriptor_(::memfd_create("state", 0)) {
    ::setenv(kStateFileVariable, std::to_string(descriptor_).c_str(), 1);
  }
  ~StateFile() {
    ::unsetenv(kStateFileVariable);
    ::close(descriptor_);
  }
  struct stat facts() const {
    struct stat facts {};
    ::fstat(descriptor_, &facts);
    return facts;
  }
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

void write_and_read(Group& group) {
  const auto memory = HostMemory::join(group, 5000);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->size(), 5000U);
  EXPECT_EQ(memory->ranks()[static_cast<std::size_t>(memory->local_rank())], group.rank());
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(memory->data()[i], std::byte{0});
  barrier(group);
  memory->data()[4999 - group.rank()] = static_cast<std::byte>(group.rank() + 1);
  barrier(group);
  for (const int rank : memory->ranks()) {
    EXPECT_EQ(memory->data()[4999 - rank], static_cast<std::byte>(rank + 1)) << "rank " << group.rank() << " of " << rank;
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    const bool here = std::find(memory->ranks().begin(), memory->ranks().end(), rank) != memory->ranks().end();
    EXPECT_EQ(memory->data()[4999 - rank] != std::byte{0}, here) << "another host's rank " << rank;
  }
  barrier(group);
}

TEST(HostMemory, IsOneForAllRanksOfAHost) {
  with_groups(3, write_and_read);
  with_groups(1, write_and_read);
}

TEST(HostMemory, IsAnotherOneOnEachHost) { with_groups(5, write_and_read, {0, 1, 0, 1, 2}); }

TEST(HostMemory, LiesInTheStateFileOfTheLauncher) {
  const StateFile file;
  with_groups(3, [&](Group& group) {
    write_and_read(group);
    const auto first = HostMemory::join(group, 100);
    const auto second = HostMemory::join(group, 100);
    first->data()[0] = std::byte{1};
    barrier(group);
    EXPECT_EQ(second->data()[0], std::byte{0}) << "stretches lie apart";
    barrier(group);
    // What was written is in the file: it is there for whoever holds the file when all ranks are gone.
    std::byte found{};
    bool in_file = false;
    for (off_t at = 0; at < file.facts().st_size; at += 4096) {
      if (::pread(file.descriptor(), &found, 1, at) == 1 && found == std::byte{1}) in_file = true;
    }
    EXPECT_TRUE(in_file);
    barrier(group);
  });
}

TEST(HostMemory, OfGroupsThatComeAndGoLeavesNothing) {
  const StateFile file;
  const auto descriptors = [] {
    int open = 0;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) open += ::fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0;
    return open;
  };
  const int before = descriptors();
  for (int round = 0; round < 50; ++round) {
    with_groups(2, [&](Group& group) {
      const auto memory = HostMemory::join(group, 1 << 20);
      memory->data()[group.rank() == 0 ? 0 : 1 << 19] = std::byte{1};
      barrier(group);
    });
  }
  EXPECT_LE(descriptors(), before + 2);
  EXPECT_LT(file.facts().st_blocks * 512, 1 << 20) << "memory that nobody uses any more is given back";
}

TEST(HostMemory, TakesAVariableThatNamesNoFileAsNone) {
  for (const char* const value : {"77", "pony", "-1", ""}) {
    ::setenv(kStateFileVariable, value, 1);
    with_groups(2, write_and_read);
  }
  ::unsetenv(kStateFileVariable);
}

}  // namespace
}  // namespace convoy::comm

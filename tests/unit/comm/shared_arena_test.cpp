// The shared arena against a model, from several threads, and through another mapping.
#include "convoy/comm/shared_memory/shared_arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/random.h"
#include "convoy/comm/shared_memory/shared_segment.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

TEST(SharedArena, GivesAlignedMemoryThatDoesNotOverlap) {
  SharedArena arena(std::size_t{64} << 20);
  RandomStream random(5);
  std::map<std::byte*, std::size_t> model;
  for (int step = 0; step < 4000; ++step) {
    if (!model.empty() && random.below(100) < 45) {
      auto victim = model.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random.below(model.size())));
      arena.deallocate(victim->first);
      model.erase(victim);
      continue;
    }
    const std::size_t bytes = random.below(20) == 0 ? (1 << 20) + random.below(1 << 20) : random.below(5000);
    auto* const memory = static_cast<std::byte*>(arena.allocate(bytes));
    if (memory == nullptr) continue;
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (bytes >= (1 << 20) ? 4096 : 64), 0u);
    ASSERT_TRUE(arena.contains(memory, std::max<std::size_t>(bytes, 1)));
    const auto after = model.lower_bound(memory);
    if (after != model.end()) {
      ASSERT_LE(memory + bytes, after->first);
    }
    if (after != model.begin()) {
      ASSERT_LE(std::prev(after)->first + std::prev(after)->second, memory);
    }
    model.emplace(memory, bytes);
  }
  for (const auto& [memory, bytes] : model) arena.deallocate(memory);
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_GT(arena.peak(), 0u);
  // All free blocks have become one again.
  void* const whole = arena.allocate(arena.capacity());
  EXPECT_EQ(whole, arena.base());
  arena.deallocate(whole);
}

TEST(SharedArena, UsesFreedMemoryAgainBeforeNewMemory) {
  SharedArena arena(1 << 20);
  void* const first = arena.allocate(1000);
  void* const second = arena.allocate(300);
  arena.deallocate(first);
  EXPECT_EQ(arena.allocate(1000), first) << "the freed block fits better than the large rest";
  arena.deallocate(second);
  EXPECT_EQ(arena.allocate(300), second);
}

TEST(SharedArena, AnswersNullWhenItIsFull) {
  SharedArena arena(4096);
  EXPECT_EQ(arena.allocate(4097), nullptr);
  void* const all = arena.allocate(4096);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(arena.allocate(0), nullptr);
  arena.deallocate(all);
  EXPECT_NE(arena.allocate(0), nullptr);
}

TEST(SharedArena, FindsMemoryThatIsNotItsOwn) {
  SharedArena arena(4096);
  int elsewhere = 0;
  EXPECT_FALSE(arena.contains(&elsewhere));
  EXPECT_FALSE(arena.contains(arena.base(), 4097));
  EXPECT_THROW(arena.deallocate(&elsewhere), Error);
  void* const memory = arena.allocate(10);
  arena.deallocate(memory);
  EXPECT_THROW(arena.deallocate(memory), Error);
  arena.deallocate(nullptr);
}

TEST(SharedArena, IsSharedByThreads) {
  SharedArena arena(std::size_t{16} << 20);
  testing::run_ranks(4, [&](int rank) {
    RandomStream random(static_cast<std::uint64_t>(rank));
    std::vector<std::pair<unsigned char*, std::size_t>> mine;
    for (int step = 0; step < 1500; ++step) {
      if (mine.size() > 20) {
        const auto [memory, bytes] = mine.back();
        for (std::size_t i = 0; i < bytes; i += 61) ASSERT_EQ(memory[i], rank + 1);
        arena.deallocate(memory);
        mine.pop_back();
      }
      const std::size_t bytes = random.below(3000);
      auto* const memory = static_cast<unsigned char*>(arena.allocate(bytes));
      ASSERT_NE(memory, nullptr);
      std::memset(memory, rank + 1, bytes);
      mine.emplace_back(memory, bytes);
    }
    for (const auto& [memory, bytes] : mine) arena.deallocate(memory);
  });
  EXPECT_EQ(arena.used(), 0u);
}

TEST(SharedArena, IsReadByOthersThroughItsDescriptor) {
  SharedArena arena(1 << 16);
  auto* const text = static_cast<char*>(arena.allocate(100));
  std::strcpy(text, "in place");
  const FileMapping view = FileMapping::open(::getpid(), arena.descriptor(), arena.capacity(), false);
  EXPECT_STREQ(reinterpret_cast<const char*>(view.data() + arena.offset_of(text)), "in place");
  const Error error = testing::error_of([&] { FileMapping::open(::getpid(), arena.descriptor(), 77, false); });
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
}

TEST(ProcessArena, IsOneForTheWholeProcess) {
  SharedArena& arena = process_arena();
  EXPECT_EQ(&arena, &process_arena());
  EXPECT_GE(arena.capacity(), std::size_t{1} << 30);
  void* const memory = arena.allocate(1 << 20);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, 1 << 20);
  arena.deallocate(memory);
}

}  // namespace
}  // namespace convoy::comm

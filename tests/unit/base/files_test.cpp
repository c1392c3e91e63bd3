// What the Files seam adds to a file system: atomic replacement, failures on demand, and paths.
#include "convoy/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "convoy/base/error.h"

namespace convoy {
namespace {

// Writes only half of a file before it fails, as a full disk or a kill would.
class TearingFiles final : public Files {
 public:
  explicit TearingFiles(Files& inner) : inner_(inner) {}
  std::string read(const std::string& path) override { return inner_.read(path); }
  std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t bytes) override {
    return inner_.read_range(path, offset, bytes);
  }
  std::uint64_t size(const std::string& path) override { return inner_.size(path); }
  bool exists(const std::string& path) override { return inner_.exists(path); }
  void write(const std::string& path, std::span<const std::string_view> pieces) override {
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    const std::string_view half = std::string_view(whole).substr(0, whole.size() / 2);
    inner_.write(path, std::span(&half, 1));
    throw Error(ErrorCode::kIo, "cannot write " + path + ": No space left on device");
  }
  void append(const std::string& path, std::string_view data) override { inner_.append(path, data); }
  void sync(const std::string& path) override { inner_.sync(path); }
  void make_directories(const std::string& path) override { inner_.make_directories(path); }
  void rename(const std::string& from, const std::string& to) override { inner_.rename(from, to); }
  void remove(const std::string& path) override { inner_.remove(path); }
  std::vector<std::string> list(const std::string& path) override { return inner_.list(path); }

 private:
  Files& inner_;
};

void put(Files& files, const std::string& path, std::string_view data) { files.write(path, std::span(&data, 1)); }

TEST(WriteAtomic, ReplacesTheContentAndLeavesNothingBeside) {
  MemoryFiles files;
  write_atomic(files, "state", "old");
  write_atomic(files, "state", "newer");
  EXPECT_EQ(files.read("state"), "newer");
  EXPECT_FALSE(files.exists("state.part"));
}

TEST(WriteAtomic, LeavesTheOldContentWhateverOperationFails) {
  MemoryFiles counted_files;
  FailingFiles counted(counted_files, 0);
  write_atomic(counted, "state", "new");
  ASSERT_GT(counted.operations(), 0u);
  for (std::uint64_t fail_at = 1; fail_at <= counted.operations(); ++fail_at) {
    MemoryFiles files;
    put(files, "state", "old");
    FailingFiles failing(files, fail_at);
    EXPECT_THROW(write_atomic(failing, "state", "new"), Error) << "operation " << fail_at;
    EXPECT_EQ(files.read("state"), "old") << "operation " << fail_at;
    write_atomic(files, "state", "new");  // what the failure left behind is not in the way
    EXPECT_EQ(files.read("state"), "new");
  }
}

TEST(WriteAtomic, LeavesTheOldContentWhenTheWriteIsTorn) {
  MemoryFiles files;
  put(files, "state", "old");
  TearingFiles tearing(files);
  EXPECT_THROW(write_atomic(tearing, "state", "a long new content"), Error);
  EXPECT_EQ(files.read("state"), "old");
}

TEST(WriteAtomic, LeavesNoFileWhereNoneWasWhenItFails) {
  MemoryFiles files;
  FailingFiles failing(files, 2);
  EXPECT_THROW(write_atomic(failing, "state", "new"), Error);
  EXPECT_FALSE(files.exists("state"));
}

// Every changing operation once, each visible in the file system afterwards.
const std::vector<std::function<void(Files&)>> kOperations = {
    [](Files& files) { files.make_directories("run/log"); },
    [](Files& files) { put(files, "a", "one"); },
    [](Files& files) { files.append("b", "two"); },
    [](Files& files) { files.rename("old", "renamed"); },
    [](Files& files) { files.remove("doomed"); },
    [](Files& files) { files.sync("kept"); },
};

std::vector<bool> effects(Files& files) {
  return {files.exists("run/log"), files.exists("a"), files.exists("b"), files.exists("renamed"),
          !files.exists("doomed")};
}

TEST(FailingFiles, FailsTheNthOperationWithoutEffectForEveryN) {
  for (std::size_t fail_at = 1; fail_at <= kOperations.size() + 1; ++fail_at) {
    MemoryFiles files;
    for (const char* name : {"old", "doomed", "kept"}) put(files, name, "x");
    FailingFiles failing(files, fail_at);
    std::vector<bool> expected(kOperations.size() - 1, true);
    for (std::size_t i = 0; i < kOperations.size(); ++i) {
      if (i + 1 == fail_at) {
        EXPECT_THROW(kOperations[i](failing), Error);
        if (i < expected.size()) expected[i] = false;
      } else {
        EXPECT_NO_THROW(kOperations[i](failing));
      }
    }
    EXPECT_EQ(effects(files), expected) << "operation " << fail_at;
    EXPECT_EQ(failing.operations(), kOperations.size());
  }
}

TEST(FailingFiles, NamesOperationAndPath) {
  MemoryFiles files;
  FailingFiles failing(files, 1);
  try {
    failing.append("ledger/rank-0", "x");
    FAIL() << "the planted failure did not come";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_STREQ(error.what(), "cannot append to ledger/rank-0: planted failure of operation 1");
  }
}

TEST(FailingFiles, NeverFailsAQuestion) {
  MemoryFiles files;
  put(files, "a", "one");
  FailingFiles failing(files, 1);
  EXPECT_EQ(failing.read("a"), "one");
  EXPECT_EQ(failing.read_range("a", 1, 2), "ne");
  EXPECT_EQ(failing.size("a"), 3u);
  EXPECT_TRUE(failing.exists("a"));
  EXPECT_THAT(failing.list("run"), testing::IsEmpty());
  EXPECT_EQ(failing.operations(), 0u);
}

TEST(LocalFiles, NamesThePathAndTheSystemsReason) {
  try {
    put(local_files(), "/dev/full", "x");
    FAIL() << "wrote to a full device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

TEST(LocalFiles, ReadsFilesThatSayTheyAreEmpty) {
  EXPECT_THAT(local_files().read("/proc/self/status"), testing::HasSubstr("Name:"));
}

TEST(Paths, AreTakenApart) {
  EXPECT_EQ(base_name("runs/7/log"), "log");
  EXPECT_EQ(base_name("log"), "log");
  EXPECT_EQ(parent_path("runs/7/log"), "runs/7");
  EXPECT_EQ(parent_path("log"), ".");
  EXPECT_EQ(parent_path("/log"), "/");
}

}  // namespace
}  // namespace convoy

// Checkpoints under failures: every file operation that can fail, kills at any of them, and damaged files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "convoy/base/error.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "tests/support/fake_group.h"
#include "tests/support/fake_state.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temporary_folder.h"

namespace convoy::elastic {
namespace {

using convoy::testing::collect_fake_ranks;
using convoy::testing::error_in;
using convoy::testing::FakeState;
using convoy::testing::ForwardingFiles;
using convoy::testing::joined;
using convoy::testing::make_run_state;
using convoy::testing::put_file;
using convoy::testing::run_fake_ranks;
using convoy::testing::TemporaryFolder;
using ::testing::HasSubstr;

// A file system that a kill -9 ends at its n-th changing operation: a write may leave a part of the file, and nothing
// that comes later has any effect.
class DyingFiles final : public ForwardingFiles {
 public:
  DyingFiles(Files& inner, std::uint64_t die_at) : ForwardingFiles(inner), die_at_(die_at) {}
  void write(const std::string& path, std::span<const std::string_view> pieces) override {
    if (++operations_ == die_at_) {
      const std::string whole = joined(pieces);
      const std::string_view torn = std::string_view(whole).substr(0, whole.size() / 2);
      ForwardingFiles::write(path, std::span(&torn, 1));
    }
    live_or_throw();
    ForwardingFiles::write(path, pieces);
  }
  void make_directories(const std::string& path) override {
    ++operations_;
    live_or_throw();
    ForwardingFiles::make_directories(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    ++operations_;
    live_or_throw();
    ForwardingFiles::rename(from, to);
  }
  void remove(const std::string& path) override {
    // Removing a folder is no single step: a kill leaves some of what was in it.
    if (++operations_ == die_at_) {
      const auto inside = list(path);
      if (!inside.empty()) ForwardingFiles::remove(path + "/" + inside.front());
    }
    live_or_throw();
    ForwardingFiles::remove(path);
  }
  void append(const std::string& path, std::string_view) override { throw Error(ErrorCode::kInternal, path); }
  void sync(const std::string& path) override { throw Error(ErrorCode::kInternal, path); }
  std::uint64_t operations() const { return operations_; }

 private:
  // Once one thread has died all have: nobody's operation comes after the last one that counts.
  void live_or_throw() const {
    if (operations_ >= die_at_) throw Error(ErrorCode::kIo, "the process was killed");
  }

  const std::uint64_t die_at_;
  std::atomic<std::uint64_t> operations_{0};
};

CheckpointMeta meta_of(std::uint64_t step) {
  CheckpointMeta meta;
  meta.step = step;
  meta.facts["position"] = std::to_string(step);
  return meta;
}

// Saves on `ranks` ranks; the elements follow from the salt. Returns whether every rank came back without an error.
bool try_save(Files& files, const std::string& folder, int ranks, std::uint64_t step, std::uint64_t salt,
              int keep = 2) {
  bool saved = true;
  for (const auto& error : collect_fake_ranks(ranks, [&](comm::Group& group) {
         FakeState state = make_run_state(group.rank(), group.size());
         state.fill(salt);
         spec::Stateful* const parts[] = {&state};
         save_checkpoint(files, group, folder, meta_of(step), parts, keep);
       })) {
    saved = saved && error == nullptr;
  }
  return saved;
}

// Loads the latest checkpoint on 3 ranks and returns which of the salts all of it has; 0 for a mix or none of them.
std::uint64_t salt_of_latest(Files& files, const std::string& folder, const std::vector<std::uint64_t>& salts) {
  const auto latest = latest_checkpoint(files, folder);
  if (!latest) return 0;
  verify_checkpoint(files, *latest);
  for (const std::uint64_t salt : salts) {
    bool all = true;
    for (int rank = 0; rank < 3; ++rank) {
      FakeState state = make_run_state(rank, 3);
      spec::Stateful* const parts[] = {&state};
      load_checkpoint(files, *latest, parts);
      all = all && state.differs_from(salt) == "";
    }
    if (all) return salt;
  }
  return 0;
}

// What a scenario saves after step 10, whose salt is 110.
struct Scenario {
  int ranks = 1;
  std::uint64_t step = 20;
  std::uint64_t salt = 120;
  int keep = 1;
};

// Makes the second save fail at each operation in turn, on an own folder each, until one has no failure.
template <typename Failing>
void fail_everywhere(Files& files, const std::string& root, const Scenario& scenario) {
  std::uint64_t n = 1;
  for (bool failed = true; failed; ++n) {
    ASSERT_LT(n, 200u);
    const std::string folder = root + "/" + std::to_string(n);
    ASSERT_TRUE(try_save(files, folder, 2, 10, 110));
    Failing failing(files, n);
    // A failure while older ones are removed is no failure of the save, so it is counted apart.
    const bool saved = try_save(failing, folder, scenario.ranks, scenario.step, scenario.salt, scenario.keep);
    failed = failing.operations() >= n;
    EXPECT_TRUE(saved || failed);
    const std::uint64_t found = salt_of_latest(files, folder, {110, scenario.salt});
    EXPECT_NE(found, 0u) << "operation " << n << ": neither the old nor the new state";
    EXPECT_TRUE(!saved || found == scenario.salt) << "operation " << n << ": what was saved is not what counts";

    ASSERT_TRUE(try_save(files, folder, 3, scenario.step, scenario.salt + 1)) << "operation " << n;
    EXPECT_EQ(salt_of_latest(files, folder, {scenario.salt + 1}), scenario.salt + 1) << "operation " << n;
    for (const CheckpointListing& listing : list_checkpoints(files, folder)) {
      EXPECT_EQ(listing.problem, "") << "operation " << n << " left something behind";
    }
    for (const std::string& name : files.list(folder)) {
      EXPECT_TRUE(name.find(".part") == name.npos && name.find(".old") == name.npos)
          << "operation " << n << ": " << name;
    }
    files.remove(folder);
  }
  EXPECT_GT(n, 6u) << "a save has more operations than that";
}

const std::vector<Scenario> kScenarios = {
    Scenario{1, 20, 120, 2},  // a new step beside the old one
    Scenario{4, 20, 120, 1},  // ... that makes the old one superfluous
    Scenario{4, 10, 120, 2},  // ... in place of the old one
};

TEST(TornSave, LeavesTheOldOrTheNewStateWhenAnyOperationFails) {
  for (const Scenario& scenario : kScenarios) {
    MemoryFiles files;
    fail_everywhere<FailingFiles>(files, "memory", scenario);
  }
}

TEST(TornSave, LeavesTheOldOrTheNewStateWhenKilledAtAnyOperation) {
  for (const Scenario& scenario : kScenarios) {
    MemoryFiles files;
    fail_everywhere<DyingFiles>(files, "memory", scenario);
  }
}

TEST(TornSave, LeavesTheOldOrTheNewStateOnARealFileSystem) {
  const TemporaryFolder folder;
  const Scenario scenario{2, 10, 120, 1};
  fail_everywhere<FailingFiles>(local_files(), folder.path() + "/failing", scenario);
  fail_everywhere<DyingFiles>(local_files(), folder.path() + "/dying", scenario);
}

TEST(TornSave, OfTheVeryFirstCheckpointIsNoCheckpoint) {
  for (std::uint64_t n = 1; n < 100; ++n) {
    MemoryFiles files;
    DyingFiles dying(files, n);
    const bool saved = try_save(dying, "folder", 2, 10, 110);
    const auto latest = latest_checkpoint(files, "folder");
    EXPECT_EQ(salt_of_latest(files, "folder", {110}), latest ? 110u : 0u);
    if (saved) {
      EXPECT_TRUE(latest.has_value());
      EXPECT_GT(n, 6u);
      return;
    }
    ASSERT_TRUE(try_save(files, "folder", 3, 10, 111));
    EXPECT_EQ(salt_of_latest(files, "folder", {111}), 111u);
  }
  ADD_FAILURE() << "saving never worked";
}

// Damages a file in place.
void damage(Files& files, const std::string& path, const std::string& kind) {
  std::string content = files.read(path);
  if (kind == "missing") {
    files.remove(path);
    return;
  }
  if (kind == "flipped bit") content[content.size() - 3] = static_cast<char>(content[content.size() - 3] ^ 0x10);
  if (kind == "truncated") content.resize(content.size() - 1);
  if (kind == "longer") content += '\0';
  if (kind == "emptied") content.clear();
  put_file(files, path, content);
}

const std::vector<std::string> kDamages = {"missing", "flipped bit", "truncated", "longer", "emptied"};

TEST(DamagedCheckpoint, IsNeverLoadedAndTheFileIsNamed) {
  for (const std::string& kind : kDamages) {
    for (const std::string name : {"rank-0000.safetensors", "rank-0001.safetensors", "manifest.json"}) {
      MemoryFiles files;
      ASSERT_TRUE(try_save(files, "folder", 2, 10, 110));
      const std::string checkpoint = "folder/step-0000000010";
      damage(files, checkpoint + "/" + name, kind);
      FakeState state = make_run_state(0, 1);
      state.fill(5);
      spec::Stateful* const parts[] = {&state};
      const auto refused = [&](const std::function<void()>& read) {
        try {
          read();
          ADD_FAILURE() << name << " " << kind << " was not found";
        } catch (const Error& error) {
          const bool gone = kind == "missing" && name == "manifest.json";
          EXPECT_EQ(error.code(), gone ? ErrorCode::kIo : ErrorCode::kCorrupt) << error.what();
          EXPECT_THAT(error.message(), HasSubstr(checkpoint + "/" + name));
        }
      };
      refused([&] { load_checkpoint(files, checkpoint, parts); });
      refused([&] { verify_checkpoint(files, checkpoint); });
      EXPECT_EQ(state.differs_from(5), "") << "a refused load changes nothing";
      EXPECT_EQ(state.times_loaded, 0);
    }
  }
}

TEST(DamagedCheckpoint, HasAFlippedBitFoundWhereverItIs) {
  MemoryFiles files;
  ASSERT_TRUE(try_save(files, "folder", 1, 10, 110));
  const std::string path = "folder/step-0000000010/rank-0000.safetensors";
  const std::string content = files.read(path);
  FakeState state = make_run_state(0, 1);
  spec::Stateful* const parts[] = {&state};
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string flipped = content;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    put_file(files, path, flipped);
    EXPECT_THROW(load_checkpoint(files, "folder/step-0000000010", parts), Error) << "byte " << at;
  }
}

TEST(DamagedCheckpoint, SendsAllRanksBackToTheOlderOne) {
  for (const std::string& kind : kDamages) {
    for (const std::string name : {"rank-0003.safetensors", "rank-0000.safetensors", "manifest.json"}) {
      MemoryFiles files;
      ASSERT_TRUE(try_save(files, "folder", 4, 10, 110));
      ASSERT_TRUE(try_save(files, "folder", 4, 20, 120));
      // Only some of the 3 ranks that load read the damaged file: the others must not stay on the newer state.
      damage(files, "folder/step-0000000020/" + name, kind);
      run_fake_ranks(3, [&](comm::Group& group) {
        FakeState state = make_run_state(group.rank(), group.size());
        spec::Stateful* const parts[] = {&state};
        const auto loaded = load_newest(files, group, "folder", parts);
        ASSERT_TRUE(loaded.has_value());
        EXPECT_EQ(loaded->meta.step, 10u);
        EXPECT_EQ(state.differs_from(110), "") << name << " " << kind << " on rank " << group.rank();
        EXPECT_EQ(state.times_loaded, 1);
      });
    }
  }
}

TEST(DamagedCheckpoint, IsAnErrorOnAllRanksWhenThereIsNoOther) {
  MemoryFiles files;
  ASSERT_TRUE(try_save(files, "folder", 4, 10, 110));
  damage(files, "folder/step-0000000010/rank-0003.safetensors", "flipped bit");
  for (const auto& error : collect_fake_ranks(3, [&](comm::Group& group) {
         FakeState state = make_run_state(group.rank(), group.size());
         spec::Stateful* const parts[] = {&state};
         load_newest(files, group, "folder", parts);
       })) {
    EXPECT_EQ(error_in(error).code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error_in(error).message(), HasSubstr("no checkpoint in folder is whole"));
  }
}

TEST(NewerFormat, IsGoneBackFromWithOneLineInTheLog) {
  MemoryFiles files;
  ASSERT_TRUE(try_save(files, "folder", 2, 10, 110));
  ASSERT_TRUE(try_save(files, "folder", 2, 20, 120));
  const std::string path = "folder/step-0000000020/manifest.json";
  std::string text = files.read(path);
  text.replace(text.find("\"format_version\":1"), 18, "\"format_version\":2");
  put_file(files, path, text);
  ::testing::internal::CaptureStderr();
  run_fake_ranks(1, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), group.size());
    spec::Stateful* const parts[] = {&state};
    EXPECT_EQ(load_newest(files, group, "folder", parts)->meta.step, 10u);
    EXPECT_EQ(state.differs_from(110), "");
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "folder/step-0000000020/manifest.json has format version 2; this version of Convoy reads up to version 1: "
            "going back to an older checkpoint\n");
}

}  // namespace
}  // namespace convoy::elastic

// Checkpoints: saved by some ranks, loaded by others; names, retention, the pointer, ranks that disagree or fail.
#include "convoy/elastic/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "tests/support/fake_group.h"
#include "tests/support/fake_state.h"
#include "tests/support/forwarding_files.h"

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kFolder = "run/checkpoints";

CheckpointMeta meta_of(std::uint64_t step) {
  CheckpointMeta meta;
  meta.step = step;
  meta.epoch = step / 10;
  meta.generation = 2;
  meta.replicas = 8;
  meta.recipe_digest = "d1ge57";
  meta.facts = {{"learning_rate.position", std::to_string(step)}, {"scaler.scale", "16384"}};
  return meta;
}

std::string step_path(std::uint64_t step) { return kFolder + "/step-000000000" + std::to_string(step); }

// Saves the run's state, its elements following from the step, on `ranks` ranks.
void save_run(Files& files, int ranks, std::uint64_t step, int keep = 2) {
  run_fake_ranks(ranks, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), group.size());
    state.fill(step);
    spec::Stateful* const parts[] = {&state};
    save_checkpoint(files, group, kFolder, meta_of(step), parts, keep);
  });
}

// Saves one part on one rank.
void save_one(Files& files, FakeState& state, std::uint64_t step, int keep = 2) {
  run_fake_ranks(1, [&](comm::Group& group) {
    spec::Stateful* const parts[] = {&state};
    save_checkpoint(files, group, kFolder, meta_of(step), parts, keep);
  });
}

std::string load_refusal(Files& files, FakeState& state, std::uint64_t step, const LoadOptions& options = {}) {
  spec::Stateful* const parts[] = {&state};
  try {
    load_checkpoint(files, step_path(step), parts, options);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.message();
  }
}

TEST(Checkpoint, GivesBackOnOneRankWhatItSaved) {
  MemoryFiles files;
  save_run(files, 1, 7);
  ASSERT_EQ(latest_checkpoint(files, kFolder), step_path(7));
  FakeState state = make_run_state(0, 1);
  spec::Stateful* const parts[] = {&state};
  const LoadedCheckpoint loaded = load_checkpoint(files, step_path(7), parts);
  EXPECT_EQ(state.differs_from(7), "");
  EXPECT_EQ(state.times_loaded, 1);
  CheckpointMeta expected = meta_of(7);
  expected.world = 1;
  EXPECT_EQ(loaded.meta, expected);
  EXPECT_EQ(read_meta(files, step_path(7)), expected);
  EXPECT_EQ(loaded.path, step_path(7));
}

TEST(Checkpoint, LoadsOnAnyNumberOfRanksWhateverNumberSaved) {
  for (const int savers : {1, 3, 4, 8}) {
    MemoryFiles files;
    save_run(files, savers, 9);
    verify_checkpoint(files, step_path(9));
    EXPECT_EQ(read_meta(files, step_path(9)).world, static_cast<std::uint64_t>(savers));
    for (const int loaders : {1, 2, 3, 8}) {
      for (int rank = 0; rank < loaders; ++rank) {
        FakeState state = make_run_state(rank, loaders);
        spec::Stateful* const parts[] = {&state};
        load_checkpoint(files, step_path(9), parts);
        EXPECT_EQ(state.differs_from(9), "") << savers << " saved, rank " << rank << " of " << loaders;
      }
    }
  }
}

TEST(Checkpoint, HoldsExactlyTheFilesOfItsManifest) {
  MemoryFiles files;
  save_run(files, 3, 5);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000005"));
  EXPECT_THAT(files.list(step_path(5)),
              ElementsAre("manifest.json", "rank-0000.safetensors", "rank-0001.safetensors", "rank-0002.safetensors"));
  EXPECT_EQ(files.read(kFolder + "/latest"), "step-0000000005\n");
}

TEST(Checkpoint, StoresWhatDiffersByRankAsEachRankSeesIt) {
  // Sizes 1000 on rank 0 and 1, 1, 1, 1 on rank 1: each rank's pieces have their own lengths.
  MemoryFiles files;
  const auto make = [](int rank, int ranks) {
    FakeState state;
    for (int i = 0; i < 5; ++i) {
      const std::int64_t size = i == 0 ? 1000 : 1;
      if (ranks == 1 || (i == 0) == (rank == 0)) {
        state.add("part." + std::to_string(i), DType::kFloat32, {size}, spec::Placement::kOwned, 0, size, true);
      }
    }
    return state;
  };
  run_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make(group.rank(), 2);
    state.fill(3);
    spec::Stateful* const parts[] = {&state};
    save_checkpoint(files, group, kFolder, meta_of(3), parts, 1);
  });
  LoadOptions options;
  options.elsewhere = [](const std::string& name) { return name.starts_with("part."); };
  for (const int ranks : {1, 2}) {
    for (int rank = 0; rank < ranks; ++rank) {
      FakeState state = make(rank, ranks);
      spec::Stateful* const parts[] = {&state};
      load_checkpoint(files, step_path(3), parts, options);
      EXPECT_EQ(state.differs_from(3), "");
    }
  }
}

TEST(Checkpoint, HoldsTheValuesOfItsMomentAndNotLaterOnes) {
  MemoryFiles files;
  FakeState state;
  state.whole("weight", {1}).fill(25);
  save_one(files, state, 3);
  state.fill(75);
  EXPECT_EQ(state.differs_from(75), "");
  spec::Stateful* const parts[] = {&state};
  load_checkpoint(files, step_path(3), parts);
  EXPECT_EQ(state.differs_from(25), "");
}

TEST(StrictLoad, NamesWhatIsMissingAndWhatIsUnexpected) {
  MemoryFiles files;
  FakeState stored;
  stored.whole("a", {2}).fill(1);
  save_one(files, stored, 1);
  FakeState wide;
  wide.whole("a", {2}).whole("b", {2}).whole("c", {3}).fill(1);
  save_one(files, wide, 2);

  FakeState model;
  model.whole("a", {2}).whole("b", {2}).fill(99);
  EXPECT_THAT(load_refusal(files, model, 1), HasSubstr("missing there: b"));
  EXPECT_THAT(load_refusal(files, model, 2), HasSubstr("not asked for: c"));
  EXPECT_EQ(model.differs_from(99), "") << "a refused load changes nothing";
  EXPECT_EQ(model.times_loaded, 0);
}

TEST(LenientLoad, ListsNamesAndLeavesMissingOnesUnchanged) {
  MemoryFiles files;
  FakeState stored;
  stored.whole("a", {2}).whole("c", {3}).fill(1);
  save_one(files, stored, 1);
  FakeState a;
  FakeState b;
  a.whole("a", {2}).fill(99);
  b.whole("b", {2}).fill(99);
  spec::Stateful* const parts[] = {&a, &b};
  LoadOptions options;
  options.strict = false;
  const LoadedCheckpoint loaded = load_checkpoint(files, step_path(1), parts, options);
  EXPECT_THAT(loaded.missing, ElementsAre("b"));
  EXPECT_THAT(loaded.unexpected, ElementsAre("c"));
  EXPECT_EQ(a.differs_from(1), "");
  EXPECT_EQ(b.differs_from(99), "");
}

TEST(Load, RefusesAnotherShapeOrTypeEvenWhenLenient) {
  MemoryFiles files;
  FakeState stored;
  stored.whole("w", {2, 3}).fill(1);
  save_one(files, stored, 1);
  LoadOptions lenient;
  lenient.strict = false;
  FakeState turned;
  turned.whole("w", {3, 2});
  EXPECT_THAT(load_refusal(files, turned, 1, lenient), HasSubstr("'w' is [2, 3] of float32 there and [3, 2]"));
  FakeState typed;
  typed.add("w", DType::kInt32, {2, 3}, spec::Placement::kReplicated, 0, 6, true);
  EXPECT_THAT(load_refusal(files, typed, 1), HasSubstr("[2, 3] of int32 here"));
}

TEST(Load, SkipsTheHashesWhenAskedTo) {
  MemoryFiles files;
  FakeState state;
  state.whole("w", {3}).fill(1);
  save_one(files, state, 1);
  const std::string path = step_path(1) + "/rank-0000.safetensors";
  std::string content = files.read(path);
  content.back() = static_cast<char>(content.back() ^ 1);
  put_file(files, path, content);
  LoadOptions options;
  spec::Stateful* const parts[] = {&state};
  EXPECT_THROW(load_checkpoint(files, step_path(1), parts, options), Error);
  options.verify = false;
  load_checkpoint(files, step_path(1), parts, options);
  EXPECT_EQ(state.differs_from(1), "w");
}

TEST(StrictLoad, AsksOnlyForTheReplicasOfThisRank) {
  MemoryFiles files;
  save_run(files, 2, 4);
  FakeState state = make_run_state(1, 3);
  EXPECT_EQ(load_refusal(files, state, 4), "accepted");
  LoadOptions alone;
  alone.elsewhere = nullptr;
  EXPECT_THAT(load_refusal(files, state, 4, alone), HasSubstr("not asked for: replica.0/bn.batches"));
}

TEST(Save, NamesATensorThatTwoRanksOrNoneSaves) {
  for (const bool twice : {true, false}) {
    MemoryFiles files;
    const auto errors = collect_fake_ranks(3, [&](comm::Group& group) {
      FakeState state;
      state.add("w", DType::kFloat32, {4}, spec::Placement::kReplicated, 0, 4, twice && group.rank() > 0);
      spec::Stateful* const parts[] = {&state};
      save_checkpoint(files, group, kFolder, meta_of(1), parts, 1);
    });
    EXPECT_EQ(error_in(errors[0]).code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error_in(errors[0]).message(),
                HasSubstr(twice ? "'w' cannot be saved: elements [0, 4) are in rank-0001.safetensors "
                                  "and in rank-0002.safetensors"
                                : "'w' cannot be saved: its 4 elements are in no file"));
    EXPECT_EQ(error_in(errors[1]).code(), ErrorCode::kAborted);
    EXPECT_THAT(error_in(errors[2]).message(), HasSubstr("rank 0 failed while saving step 1"));
    EXPECT_EQ(latest_checkpoint(files, kFolder), std::nullopt);
  }
}

TEST(Save, NamesRanksThatSaveDifferentPointsOfTheRun) {
  MemoryFiles files;
  const auto errors = collect_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 2);
    CheckpointMeta meta = meta_of(1);
    if (group.rank() == 1) meta.epoch = 5;
    spec::Stateful* const parts[] = {&state};
    save_checkpoint(files, group, kFolder, meta, parts, 1);
  });
  EXPECT_EQ(error_in(errors[0]).code(), ErrorCode::kDesync);
  EXPECT_THAT(error_in(errors[0]).message(), HasSubstr("epoch is 0 on rank 0 and 5 on rank 1"));
  EXPECT_EQ(error_in(errors[1]).code(), ErrorCode::kAborted);
}

// A rank whose state cannot be listed.
class BrokenState final : public spec::Stateful {
 public:
  std::vector<spec::StateEntry> state() override { throw Error(ErrorCode::kOutOfMemory, "planted"); }
};

TEST(Save, FailsOnAllRanksWhenOneFailsAndWorksAgainAfterwards) {
  MemoryFiles files;
  save_run(files, 4, 1);
  const auto errors = collect_fake_ranks(4, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 4);
    state.fill(2);
    BrokenState broken;
    spec::Stateful* const whole[] = {&state};
    spec::Stateful* const half[] = {&state, &broken};
    const bool breaks = group.rank() == 2;
    const std::span<spec::Stateful* const> parts =
        breaks ? std::span<spec::Stateful* const>(half) : std::span<spec::Stateful* const>(whole);
    try {
      save_checkpoint(files, group, kFolder, meta_of(2), parts, 2);
    } catch (const Error&) {
      // The group must still be in step for what comes next.
      EXPECT_EQ(comm::all_reduce_number(group, group.rank(), ReduceOp::kSum), 6.0);
      throw;
    }
  });
  EXPECT_EQ(error_in(errors[2]).code(), ErrorCode::kOutOfMemory);
  for (const std::size_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(error_in(errors[rank]).code(), ErrorCode::kAborted);
    EXPECT_THAT(error_in(errors[rank]).message(), HasSubstr("rank 2 failed while saving step 2 to run/checkpoints"));
  }
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(1));
  const auto listed = list_checkpoints(files, kFolder);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_THAT(listed[0].problem, HasSubstr("step-0000000002.part is incomplete"));
  EXPECT_EQ(listed[1].problem, "");

  save_run(files, 2, 2);
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(2));
  EXPECT_THAT(files.list(step_path(2)), ElementsAre("manifest.json", "rank-0000.safetensors", "rank-0001.safetensors"));
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000001", "step-0000000002"));
}

// A disk that stores something else than it was given, and says nothing.
class LyingFiles final : public ForwardingFiles {
 public:
  LyingFiles(Files& inner, std::string victim) : ForwardingFiles(inner), victim_(std::move(victim)) {}
  void write(const std::string& path, std::span<const std::string_view> pieces) override {
    std::string whole = joined(pieces);
    if (path.ends_with(victim_)) whole.back() = static_cast<char>(whole.back() ^ 1);
    const std::string_view piece = whole;
    ForwardingFiles::write(path, std::span(&piece, 1));
  }

 private:
  const std::string victim_;
};

TEST(Save, ReadsBackWhatItWroteBeforeItCounts) {
  MemoryFiles files;
  save_run(files, 2, 1, 1);
  LyingFiles lying(files, "rank-0001.safetensors");
  const auto errors = collect_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 2);
    spec::Stateful* const parts[] = {&state};
    save_checkpoint(lying, group, kFolder, meta_of(2), parts, 1);
  });
  EXPECT_EQ(error_in(errors[0]).code(), ErrorCode::kAborted);
  EXPECT_EQ(error_in(errors[1]).code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error_in(errors[1]).message(), HasSubstr("step-0000000002.part/rank-0001.safetensors is damaged"));
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(1));
}

TEST(Save, RefusesToKeepNothing) {
  MemoryFiles files;
  EXPECT_THROW(save_run(files, 2, 1, 0), Error);
  EXPECT_THAT(files.list(kFolder), IsEmpty());
}

TEST(Save, ReplacesTheSameStep) {
  MemoryFiles files;
  save_run(files, 4, 6);
  FakeState state;
  state.whole("only", {3}).fill(60);
  save_one(files, state, 6);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000006"));
  EXPECT_THAT(files.list(step_path(6)), ElementsAre("manifest.json", "rank-0000.safetensors"));
  state.fill(0);
  EXPECT_EQ(load_refusal(files, state, 6), "accepted");
  EXPECT_EQ(state.differs_from(60), "");
}

TEST(Retention, KeepsTheNewestAndRemovesAbandonedOnesFirst) {
  MemoryFiles files;
  for (const std::uint64_t step : {1, 2, 3, 4}) save_run(files, 2, step, 3);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000002", "step-0000000003", "step-0000000004"));
  // Going on from step 2: 3 is replaced, 4 belongs to what was given up.
  save_run(files, 1, 3, 2);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000002", "step-0000000003"));
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(3));
  save_run(files, 1, 1, 1);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000001"));
}

TEST(Retention, FailingIsNoFailureOfTheSave) {
  MemoryFiles files;
  save_run(files, 1, 1, 1);
  FailingFiles counting(files, 0);
  save_run(counting, 1, 2, 1);
  FailingFiles failing(files, counting.operations());
  save_run(failing, 1, 3, 1);
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(3));
  save_run(files, 1, 4, 1);
  EXPECT_THAT(files.list(kFolder), ElementsAre("latest", "step-0000000004"));
}

TEST(LatestCheckpoint, IsNothingBeforeTheFirstSave) {
  MemoryFiles files;
  EXPECT_EQ(latest_checkpoint(files, kFolder), std::nullopt);
  EXPECT_THAT(list_checkpoints(files, kFolder), IsEmpty());
  run_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 2);
    spec::Stateful* const parts[] = {&state};
    EXPECT_FALSE(load_newest(files, group, kFolder, parts).has_value());
  });
}

TEST(LatestCheckpoint, IsTheNewestWholeOneWhenThePointerIsMissingOrDamaged) {
  MemoryFiles files;
  for (const std::uint64_t step : {1, 2, 3}) save_run(files, 2, step, 3);
  const std::string pointer = kFolder + "/latest";
  write_atomic(files, pointer, "step-0000000002\n");
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(2)) << "the pointer decides where it is whole";
  for (const char* damaged : {"", "\n", "step-3", "../../else", "step-0000000009\n", "step-0000000002.part\n"}) {
    write_atomic(files, pointer, damaged);
    EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(3)) << damaged;
  }
  files.remove(pointer);
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(3));
  files.remove(step_path(3) + "/rank-0001.safetensors");
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(2));
}

TEST(LatestCheckpoint, IsFoundWhereACrashLeftItWhileItWasReplaced) {
  MemoryFiles files;
  for (const std::uint64_t step : {1, 3, 2}) save_run(files, 2, step, 3);
  files.rename(step_path(2), step_path(2) + ".old");
  EXPECT_EQ(latest_checkpoint(files, kFolder), step_path(2) + ".old");
  FakeState state = make_run_state(0, 1);
  spec::Stateful* const parts[] = {&state};
  load_checkpoint(files, step_path(2) + ".old", parts);
  EXPECT_EQ(state.differs_from(2), "");

  save_run(files, 1, 4, 9);
  EXPECT_THAT(files.list(kFolder),
              ElementsAre("latest", "step-0000000001", "step-0000000002", "step-0000000003", "step-0000000004"));
  verify_checkpoint(files, step_path(2));
}

TEST(LatestCheckpoint, IsAnErrorWhenAllAreDamaged) {
  MemoryFiles files;
  save_run(files, 2, 1);
  files.remove(step_path(1) + "/rank-0001.safetensors");
  try {
    latest_checkpoint(files, kFolder);
    ADD_FAILURE() << "a run must not begin anew in silence";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.message(), HasSubstr("rank-0001.safetensors is missing"));
  }
}

TEST(LoadNewest, RefusesRanksThatSeeDifferentCheckpoints) {
  MemoryFiles here;
  MemoryFiles there;
  save_run(here, 1, 1);
  save_run(there, 1, 1);
  save_run(there, 1, 2);
  const auto errors = collect_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 2);
    spec::Stateful* const parts[] = {&state};
    load_newest(group.rank() == 0 ? here : there, group, kFolder, parts);
  });
  EXPECT_EQ(error_in(errors[0]).code(), ErrorCode::kDesync);
  EXPECT_EQ(error_in(errors[1]).code(), ErrorCode::kDesync);
  EXPECT_THAT(error_in(errors[0]).message(), HasSubstr("one would load step 1, another step 2"));
}

TEST(LoadNewest, DoesNotGoBackForAStateThatDoesNotFit) {
  MemoryFiles files;
  save_run(files, 1, 1);
  save_run(files, 1, 2);
  const auto errors = collect_fake_ranks(2, [&](comm::Group& group) {
    FakeState state = make_run_state(group.rank(), 2);
    if (group.rank() == 1) state.whole("parameters/new", {2});
    spec::Stateful* const parts[] = {&state};
    load_newest(files, group, kFolder, parts);
  });
  EXPECT_EQ(error_in(errors[0]).code(), ErrorCode::kAborted);
  EXPECT_THAT(error_in(errors[0]).message(), HasSubstr("rank 1 failed while loading run/checkpoints/step-0000000002"));
  EXPECT_EQ(error_in(errors[1]).code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error_in(errors[1]).message(), HasSubstr("missing there: parameters/new"));
}

}  // namespace
}  // namespace convoy::elastic

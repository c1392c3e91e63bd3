// Whole runs: the same recipe on any number of ranks, stopped and resumed, ends with the same bits.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::run_command;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";

// The CNN with batch norm, dropout, augmentation, momentum and clipping, made small enough for a test.
const std::vector<std::string> kCnn{
    "--set", "data.limit=1999",        "--set", "data.validation=500",       "--set", "model.channels=[8,8,16,16]",
    "--set", "model.dropout=0.25",     "--set", "train.global_batch=64",     "--set", "train.momentum=0.9",
    "--set", "train.clip_norm=1.0",    "--set", "train.evaluation_batch=500", "--set", "train.steps=60",
    "--set", "train.schedule=cosine",  "--set", "train.warmup=10",           "--set", "train.evaluate_every=0"};

struct RunOutcome {
  int status = -1;
  json summary;
  std::string errors;
};

RunOutcome run(const std::string& folder, int ranks, const std::vector<std::string>& sets, bool resume = false,
        const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> arguments{kConvoy, "run", std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml",
                                     "-n", std::to_string(ranks), "--out", folder, "--json"};
  if (resume) arguments = {kConvoy, "run", std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml",
                           "-n", std::to_string(ranks), "--resume", folder, "--json"};
  arguments.insert(arguments.end(), sets.begin(), sets.end());
  const testing::CommandResult result = run_command(arguments, environment);
  RunOutcome found{result.status, json::parse(result.output, nullptr, false), result.errors};
  return found;
}

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  for (const std::string& one : more) {
    sets.push_back("--set");
    sets.push_back(one);
  }
  return sets;
}

// Asserts the conditions under which digests can be equal, then returns the digest.
std::string digest_of(const RunOutcome& run, const json& reference) {
  EXPECT_EQ(run.status, 0) << run.errors;
  if (run.status != 0) return "failed";
  EXPECT_EQ(run.summary["blas"]["kernel"], reference["blas"]["kernel"]) << "another BLAS kernel rounds differently";
  EXPECT_EQ(run.summary["blas"]["threads"], 1);
  EXPECT_EQ(run.summary["steps"], 60);
  return run.summary["parameters_digest"];
}

TEST(Digest, IsEqualWithSynchronisedBatchNorm) {
  const TemporaryFolder folder;
  // 1499 samples: the last batch of the epoch leaves replicas with unequal parts.
  const auto recipe = with(kCnn, {"replicas.count=8", "model.sync_batch_norm=true", "train.accumulation=2"});
  const RunOutcome alone = run(folder.path() + "/1", 1, recipe);
  ASSERT_EQ(alone.status, 0) << alone.errors;
  const std::string digest = digest_of(alone, alone.summary);
  for (const int ranks : {3, 4}) {
    EXPECT_EQ(digest_of(run(folder.path() + "/" + std::to_string(ranks), ranks, recipe), alone.summary), digest) << ranks;
  }
  const auto plain = with(recipe, {"model.sync_batch_norm=false"});
  EXPECT_NE(digest_of(run(folder.path() + "/plain", 2, plain), alone.summary), digest);
  const auto verified = run_command({kConvoy, "verify", std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml",
                                     "-n", "2", "--set", "model.sync_batch_norm=true"});
  EXPECT_NE(verified.status, 0);
  EXPECT_NE(verified.errors.find("no one-process reference"), std::string::npos) << verified.errors;
}

TEST(Digest, IsEqualOnAnyNumberOfRanksAndAfterAResumeOnOthers) {
  const TemporaryFolder folder;
  const auto recipe = with(kCnn, {"replicas.count=4"});
  const RunOutcome alone = run(folder.path() + "/1", 1, recipe);
  ASSERT_EQ(alone.status, 0) << alone.errors;
  ASSERT_NE(alone.summary["blas"]["kernel"], "unknown");
  const std::string digest = digest_of(alone, alone.summary);
  for (const int ranks : {2, 3, 4}) {
    const RunOutcome more = run(folder.path() + "/" + std::to_string(ranks), ranks, recipe);
    EXPECT_EQ(digest_of(more, alone.summary), digest) << ranks << " ranks";
    EXPECT_EQ(more.summary["quality"]["confusion"], alone.summary["quality"]["confusion"]) << ranks << " ranks";
    EXPECT_EQ(more.summary["quality"]["loss"], alone.summary["quality"]["loss"]) << ranks << " ranks";
  }

  // Stopped by a kill at step 17 on 4 ranks, with a checkpoint of that step, and resumed on 3.
  const std::string stopped = folder.path() + "/stopped";
  const auto saving = with(recipe, {"checkpoint.every_steps=17"});
  const RunOutcome killed = run(stopped, 4, saving, false, {{"CONVOY_PLANT", "kill:rank=2,step=20"}});
  EXPECT_EQ(killed.status, 3) << killed.errors;
  const RunOutcome resumed = run(stopped, 3, saving, true);
  EXPECT_EQ(digest_of(resumed, alone.summary), digest);
  EXPECT_EQ(resumed.summary["resumed_at_step"], 17) << resumed.errors;
  EXPECT_EQ(resumed.summary["ledger"]["repeated"], 0);
  EXPECT_EQ(resumed.summary["ledger"]["missing"], 0);
  EXPECT_GT(resumed.summary["ledger"]["redone_samples"], 0) << "steps 17 to 19 were done twice";
  const auto checked = run_command({kConvoy, "ledger", stopped, "--json"});
  EXPECT_EQ(checked.status, 0) << checked.output << checked.errors;
}

TEST(Digest, IsEqualForEightReplicasOnUnalignedRanks) {
  const TemporaryFolder folder;
  const auto recipe = with(kCnn, {"replicas.count=8", "train.steps=60"});
  const RunOutcome alone = run(folder.path() + "/1", 1, recipe);
  ASSERT_EQ(alone.status, 0) << alone.errors;
  for (const int ranks : {3, 5, 8}) {
    const RunOutcome more = run(folder.path() + "/" + std::to_string(ranks), ranks, recipe);
    EXPECT_EQ(digest_of(more, alone.summary), digest_of(alone, alone.summary)) << ranks << " ranks";
  }
}

TEST(Digest, IsEqualWhenTheResolvedRecipeIsRunAgain) {
  const TemporaryFolder folder;
  const auto recipe = with(kCnn, {"train.steps=12", "replicas.count=2"});
  const RunOutcome first = run(folder.path() + "/first", 2, recipe);
  ASSERT_EQ(first.status, 0) << first.errors;
  const auto again = run_command({kConvoy, "run", folder.path() + "/first/recipe.toml", "-n", "1", "--out",
                                  folder.path() + "/again", "--json"});
  ASSERT_EQ(again.status, 0) << again.errors;
  EXPECT_EQ(json::parse(again.output)["parameters_digest"], first.summary["parameters_digest"]);
}

}  // namespace
}  // namespace convoy

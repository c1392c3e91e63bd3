// The CIFAR-10 recipe on synthetic files of the official format: the accuracy of its comment, on 1 and 4 ranks alike.
#include <gtest/gtest.h>

#include <sstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/cifar10.toml";

void make_files(const std::string& folder, int samples, int test_samples) {
  const CommandResult made = testing::run_command({kConvoy, "data", "synth", "cifar10", "--out", folder, "--samples",
                                                   std::to_string(samples), "--test-samples",
                                                   std::to_string(test_samples)});
  ASSERT_EQ(made.status, 0) << made.errors;
}

json train(const std::string& data, const std::string& out, int ranks, const std::vector<std::string>& sets) {
  std::vector<std::string> arguments{kConvoy, "run", kRecipe, "-n", std::to_string(ranks), "--json", "--quiet",
                                     "--out", out, "--set", "data.path=" + data};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  const CommandResult done = testing::run_command(arguments, {}, std::chrono::seconds(280));
  EXPECT_EQ(done.status, 0) << done.errors;
  return json::parse(done.output, nullptr, false);
}

TEST(CifarRecipe, ReachesTheAccuracyOfItsCommentOnOneAndFourRanksWithEqualDigests) {
  const TemporaryFolder folder;
  make_files(folder.path() + "/data", 1000, 500);
  const std::vector<std::string> sets{"data.validation=200", "train.global_batch=40", "train.epochs=6",
                                      "train.warmup=20", "train.learning_rate=0.05"};
  const json alone = train(folder.path() + "/data", folder.path() + "/1", 1, sets);
  const json four = train(folder.path() + "/data", folder.path() + "/4", 4, sets);
  ASSERT_TRUE(alone.is_object() && four.is_object());
  EXPECT_EQ(four["parameters_digest"], alone["parameters_digest"]);
  EXPECT_GE(alone["quality"]["accuracy"], 0.75);
  EXPECT_EQ(four["quality"], alone["quality"]);
  EXPECT_EQ(alone["steps"], 120);
  EXPECT_EQ(alone["ledger"]["samples"], 6 * 800);
}

// The samples that a step used, over all ranks and replicas, and how many each replica had.
struct StepUse {
  std::set<std::int64_t> samples;
  std::vector<std::size_t> of_replica;
};

std::vector<StepUse> used_samples(const std::string& run, int replicas) {
  std::vector<StepUse> steps;
  const CommandResult listed = testing::run_command({"/bin/sh", "-c", "cat " + run + "/ledger/*"});
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("samples") || !row.contains("step")) continue;
    const std::size_t step = row["step"];
    if (steps.size() <= step) steps.resize(step + 1);
    steps[step].of_replica.resize(static_cast<std::size_t>(replicas));
    for (const json& sample : row["samples"]) steps[step].samples.insert(sample.get<std::int64_t>());
    steps[step].of_replica[row["replica"].get<std::size_t>()] += row["samples"].size();
  }
  return steps;
}

// 1 x 128 and 4 x 32 are the same global batch: as many steps, and in each the same samples.
TEST(CifarRecipe, DealsTheSameSamplesToOneReplicaOf128AndFourOf32) {
  const TemporaryFolder folder;
  make_files(folder.path() + "/data", 600, 100);
  const std::vector<std::string> sets{"data.validation=80", "train.epochs=1", "model.name=softmax"};
  std::vector<std::string> whole = sets;
  whole.emplace_back("replicas.count=1");
  const json one = train(folder.path() + "/data", folder.path() + "/1x128", 1, whole);
  const json four = train(folder.path() + "/data", folder.path() + "/4x32", 2, sets);
  ASSERT_TRUE(one.is_object() && four.is_object());
  EXPECT_EQ(one["steps"], 5);
  EXPECT_EQ(four["steps"], 5);
  const std::vector<StepUse> of_one = used_samples(folder.path() + "/1x128", 1);
  const std::vector<StepUse> of_four = used_samples(folder.path() + "/4x32", 4);
  ASSERT_EQ(of_one.size(), 5U);
  ASSERT_EQ(of_four.size(), 5U);
  for (std::size_t step = 0; step < 5; ++step) {
    EXPECT_EQ(of_four[step].samples, of_one[step].samples) << "step " << step;
    const std::size_t each = step < 4 ? 32 : 2;
    EXPECT_EQ(of_four[step].of_replica, std::vector<std::size_t>(4, each)) << "step " << step;
    EXPECT_EQ(of_one[step].samples.size(), 4 * each) << "step " << step;
  }
}

}  // namespace
}  // namespace convoy

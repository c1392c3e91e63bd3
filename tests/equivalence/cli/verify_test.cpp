// `convoy verify`: says 0 differences on clean runs, and names each mistake that is planted in the ranks' step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using ::testing::HasSubstr;
using nlohmann::json;
using testing::CommandResult;
using testing::TemporaryFolder;

const std::string kBinaries = CONVOY_BINARY_DIR;
const std::string kRecipes = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/";

// Three replicas of an uneven batch in three uneven micro-batches, with everything that a mistake can hide in.
const std::vector<std::string> kSmallCnn{"data.limit=500",        "data.validation=100",  "model.channels=[4,8]",
                                         "model.dropout=0.25",    "train.global_batch=46", "train.accumulation=3",
                                         "train.momentum=0.9",    "train.clip_norm=1.0",  "train.schedule=cosine",
                                         "replicas.count=3"};

struct Verified {
  int status = -1;
  json result;
  std::string errors;

  std::vector<std::string> faults() const {
    std::vector<std::string> names;
    for (const json& finding : result["findings"]) names.push_back(finding["fault"]);
    return names;
  }
};

Verified verify(const std::string& recipe, int ranks, const std::vector<std::string>& sets,
                const std::string& planted = "") {
  const TemporaryFolder folder;
  std::vector<std::string> arguments{kBinaries + "/bin/convoy", "verify", recipe,  "-n",  std::to_string(ranks),
                                     "--json", "--out", folder.path() + "/kept"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  std::map<std::string, std::string> environment;
  if (!planted.empty()) environment["CONVOY_PLANT"] = "verify:" + planted;
  const CommandResult done = testing::run_command(arguments, environment);
  return {done.status, json::parse(done.output, nullptr, false), done.errors};
}

void expect_same(const Verified& verified) {
  EXPECT_EQ(verified.status, 0) << verified.errors << verified.result.dump(1);
  if (verified.status != 0) return;
  EXPECT_EQ(verified.result["ok"], true);
  EXPECT_EQ(verified.result["differing"], 0);
  EXPECT_GT(verified.result["elements"], 1000) << "something was compared";
}

class Planted : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Planted, IsNamed) {
  const auto [planted, fault] = GetParam();
  const Verified verified = verify(kRecipes + "fashion_cnn.toml", 2, kSmallCnn, planted);
  EXPECT_EQ(verified.status, 1) << verified.errors;
  ASSERT_TRUE(verified.result.is_object()) << verified.errors;
  EXPECT_EQ(verified.result["ok"], false);
  EXPECT_EQ(verified.faults(), std::vector<std::string>{fault}) << verified.result.dump(1);
}

INSTANTIATE_TEST_SUITE_P(Verify, Planted,
                         ::testing::Values(std::pair("sum", "sum_instead_of_mean"),
                                           std::pair("unweighted", "unweighted_parts"),
                                           std::pair("scale", "loss_scale_under_accumulation"),
                                           std::pair("samples", "same_samples_on_ranks"),
                                           std::pair("order", "order_not_renewed"),
                                           std::pair("resample", "resampled_by_rank"),
                                           std::pair("dropout", "same_random_numbers_on_ranks"),
                                           std::pair("buffer", "unsynchronised_buffer")),
                         [](const auto& test) { return std::string(test.param.first); });

TEST(Verify, FindsNoDifferenceInTheCnnOnTwoAndThreeRanks) {
  for (const int ranks : {2, 3}) expect_same(verify(kRecipes + "fashion_cnn.toml", ranks, kSmallCnn));
}

// Full batches divide evenly here; only the short last one shows that parts are not weighted.
TEST(Verify, LooksAtTheShortLastBatch) {
  std::vector<std::string> even = kSmallCnn;
  for (const char* set : {"train.global_batch=48", "train.accumulation=1"}) even.emplace_back(set);
  const Verified verified = verify(kRecipes + "fashion_cnn.toml", 2, even, "unweighted");
  EXPECT_EQ(verified.status, 1) << verified.errors;
  EXPECT_EQ(verified.faults(), std::vector<std::string>{"unweighted_parts"}) << verified.result.dump(1);
  expect_same(verify(kRecipes + "fashion_cnn.toml", 2, even));
}

TEST(Verify, FindsNoDifferenceInResNet20OnColourImages) {
  const TemporaryFolder folder;
  ASSERT_EQ(testing::run_command({kBinaries + "/bin/convoy", "data", "synth", "cifar10", "--out", folder.path(),
                                  "--samples", "200"})
                .status,
            0);
  expect_same(verify(kRecipes + "cifar10.toml", 2,
                     {"data.path=" + folder.path(), "data.validation=40", "train.global_batch=20", "replicas.count=3"}));
}

TEST(Verify, FindsNoDifferenceInATorchScriptModel) {
  const TemporaryFolder folder;
  const std::string net = folder.path() + "/net.pt";
  ASSERT_EQ(testing::run_command({kBinaries + "/examples/script_module", net}).status, 0);
  expect_same(verify(kRecipes + "fashion_softmax.toml", 2,
                     {"model.script=" + net, "data.limit=500", "data.validation=100", "replicas.count=3"}));
}

TEST(Verify, WithReplicasOffListsLayersThatDependOnTheLocalBatchAndNamesTheTolerance) {
  std::vector<std::string> off = kSmallCnn;
  off.emplace_back("replicas.mode=off");
  const Verified verified = verify(kRecipes + "fashion_cnn.toml", 2, off);
  ASSERT_EQ(verified.status, 0) << verified.errors;
  EXPECT_EQ(verified.result["batch_dependent_layers"], (json{"norm1", "norm2"}));
  EXPECT_THAT(verified.result["accepted"].get<std::string>(), HasSubstr("float32 within 1e-05"));
  EXPECT_EQ(verified.result["facts"]["replicas"], 2);
}

TEST(Verify, RefusesBadRequestsBeforeAnyRankStarts) {
  const std::string convoy = kBinaries + "/bin/convoy";
  const std::string recipe = kRecipes + "fashion_cnn.toml";
  const auto line = [](const std::vector<std::string>& arguments) {
    const CommandResult done = testing::run_command(arguments);
    EXPECT_EQ(done.status, 2) << done.errors;
    return done.errors;
  };
  EXPECT_THAT(line({convoy, "verify", recipe, "-n", "0"}), HasSubstr("-n 0"));
  EXPECT_THAT(line({convoy, "verify", recipe, "-n", "9"}), HasSubstr("9 ranks for the 2 replicas"));
  EXPECT_THAT(line({convoy, "verify", recipe, "-n", "2", "--steps", "0"}), HasSubstr("--steps"));
  EXPECT_THAT(line({convoy, "verify", "no.toml", "-n", "2"}), HasSubstr("no.toml"));
  const TemporaryFolder full;
  testing::run_command({"/usr/bin/touch", full.path() + "/file"});
  EXPECT_THAT(line({convoy, "verify", recipe, "-n", "2", "--out", full.path()}), HasSubstr("not empty"));
}

}  // namespace
}  // namespace convoy

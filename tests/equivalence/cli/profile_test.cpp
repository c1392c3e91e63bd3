// `convoy profile`: names layers as the model does, adds up, and agrees with closed forms of arithmetic and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
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
using ::testing::HasSubstr;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml";

struct Options {
  std::string optimizer = "sgd";
  double momentum = 0.0;
  int replicas = 1;
  std::string steps = "6";
  std::vector<std::string> arguments{};
};

CommandResult run_profile(const Options& options) {
  std::vector<std::string> arguments{kConvoy, "profile", kRecipe, "--json", "--warmup", "2", "--steps", options.steps};
  for (const std::string& set :
       {std::string("data.limit=2000"), std::string("data.validation=200"), std::string("model.channels=[4,8]"),
        std::string("model.dropout=0"), std::string("train.nesterov=false"), std::string("train.global_batch=48"),
        std::string("train.learning_rate=0.001"), "replicas.count=" + std::to_string(options.replicas),
        "train.optimizer=" + options.optimizer, "train.momentum=" + std::to_string(options.momentum)}) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  return testing::run_command(arguments);
}

// Several tests look at the same profiles.
json profile(const Options& options) {
  static std::map<std::string, json> known;
  std::string key = options.optimizer + std::to_string(options.momentum) + std::to_string(options.replicas);
  key += options.steps;
  for (const std::string& argument : options.arguments) key += argument;
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const CommandResult done = run_profile(options);
  EXPECT_EQ(done.status, 0) << done.errors;
  json result = json::parse(done.output, nullptr, false);
  EXPECT_TRUE(result.is_object()) << done.output;
  known[key] = result;
  return result;
}

const json& layer(const json& found, const std::string& name) {
  for (const json& row : found["layers"]["rows"]) {
    if (row["name"] == name) return row;
  }
  throw std::runtime_error("no layer " + name);
}

// conv1 1->4, norm1, conv2 4->8, norm2 (3 x 3 windows without bias), pooling, output 8 x 14 x 14 -> 10.
constexpr std::int64_t kOutput = 8 * 14 * 14 * 10;
constexpr std::int64_t kElements = 36 + 4 + 4 + 288 + 8 + 8 + kOutput + 10;
constexpr std::int64_t kPadded = 48 + 16 + 16 + 288 + 16 + 16 + kOutput + 16;
constexpr std::int64_t kTensors = 8;

TEST(Profile, NamesLayersAsTheModelDoesAndCountsTheirArithmetic) {
  const json found = profile({});
  std::vector<std::string> with_parameters;
  for (const json& row : found["layers"]["rows"]) {
    if (row["parameters"] > 0) with_parameters.push_back(row["name"]);
  }
  EXPECT_EQ(with_parameters, (std::vector<std::string>{"conv1", "norm1", "conv2", "norm2", "output"}));
  EXPECT_EQ(found["parameters"], kElements);
  for (const char* name : {"relu 1", "relu 2", "max_pool2d 1", "cross_entropy_loss 1"}) layer(found, name);

  const double pixels = 48.0 * 28 * 28;
  EXPECT_EQ(layer(found, "conv1")["forward_ms"]["flop"], 2 * pixels * 4 * 9);
  EXPECT_EQ(layer(found, "conv1")["backward_ms"]["flop"], 2 * pixels * 4 * 9) << "images want no gradient";
  EXPECT_EQ(layer(found, "conv2")["forward_ms"]["flop"], 2 * pixels * 8 * 9 * 4);
  EXPECT_EQ(layer(found, "conv2")["backward_ms"]["flop"], 2 * 2 * pixels * 8 * 9 * 4);
  EXPECT_EQ(layer(found, "output")["forward_ms"]["flop"], 2.0 * 48 * kOutput + 480);
  EXPECT_EQ(layer(found, "output")["backward_ms"]["flop"], 2 * 2.0 * 48 * kOutput + 480);
  EXPECT_EQ(layer(found, "output")["parameters"], kOutput + 10);
  for (const json& row : found["layers"]["rows"]) EXPECT_EQ(row["flop_known"], true) << row["name"];
}

TEST(Profile, PartsAddUpToTheStepAndLayersToNoMoreThanTheirPass) {
  const json found = profile({});
  double parts = 0;
  for (const char* part : {"input_wait", "forward", "backward", "gradient_sum", "optimizer", "other"}) {
    parts += found["parts_ms"][part]["mean"].get<double>();
  }
  EXPECT_NEAR(parts, found["step_ms"]["mean"].get<double>(), 0.01 * parts);
  EXPECT_GT(found["parts_ms"]["forward"]["median"], 0.0);
  for (const char* pass : {"forward", "backward"}) {
    double layers = 0;
    for (const json& row : found["layers"]["rows"]) {
      const double time = row[std::string(pass) + "_ms"]["mean"];
      EXPECT_GE(time, 0.0);
      layers += time;
    }
    const double whole = found["layers"][std::string(pass) + "_ms"]["mean"];
    EXPECT_LE(layers, whole) << pass;
    EXPECT_GT(layers, 0.5 * whole) << pass << ": most of the time belongs to layers";
    EXPECT_NEAR(layers + found["layers"][std::string(pass) + "_rest_ms"]["mean"].get<double>(), whole, 1e-6 * whole);
  }
  EXPECT_EQ(found["steps"]["measured"], 6);
  EXPECT_EQ(found["steps"]["layers"], 20);
  EXPECT_EQ(found["steps"]["ended_early"], false);
  EXPECT_GT(found["estimated_run"]["total_s"].get<double>(), found["estimated_run"]["training_s"].get<double>());
  EXPECT_EQ(found["walls"].back()["wall"], "too_slow");
}

void expect_closed_form(const json& found, int moments) {
  const json& memory = found["memory_bytes"];
  EXPECT_EQ(memory["parameters"], 4 * kPadded);
  EXPECT_EQ(memory["gradients"], 4 * kPadded);
  EXPECT_EQ(memory["optimizer"], 4 * kPadded * moments + 8 * kTensors);
  for (const char* category : {"parameters", "gradients", "optimizer", "gradient_partials"}) {
    EXPECT_EQ(memory["closed_form"][category], memory["highest"][category]) << category;
  }
}

TEST(Profile, MemoryOfStateIsTheClosedFormForEachOptimizer) {
  expect_closed_form(profile({}), 0);
  expect_closed_form(profile({"sgd", 0.9}), 1);
  expect_closed_form(profile({"adam"}), 2);
}

TEST(Profile, PartialGradientsGrowWithReplicasAsForeseen) {
  const json one = profile({});
  EXPECT_EQ(one["memory_bytes"]["highest"]["gradient_partials"], 4 * kElements);
  const json two = profile({"sgd", 0.9, 2});
  EXPECT_EQ(two["memory_bytes"]["highest"]["gradient_partials"], 4 * (kElements + kOutput));
  // The third replica waits beside the sum of the first two. The fourth's gradients come, the output's bias first, which
  // frees two of its size before the output's weight is there.
  const json four = profile({"sgd", 0.9, 4});
  EXPECT_EQ(four["memory_bytes"]["highest"]["gradient_partials"], 4 * (2 * kElements + kOutput - 10));
  expect_closed_form(four, 1);
}

TEST(Profile, CategoriesAddUpToThePeakThatTheArenaSaw) {
  const json found = profile({"sgd", 0.9, 2});
  const json& memory = found["memory_bytes"];
  const std::set<std::string> phases{"initialisation", "forward", "backward", "update"};
  EXPECT_EQ(phases.count(memory["peak_phase"]), 1u);
  double sum = 0;
  for (const auto& [category, bytes] : memory["highest"].items()) sum += memory[category].get<double>();
  EXPECT_NEAR(sum, memory["total"].get<double>(), 0.001 * sum);
  // Batches lie in the loader's own memory.
  const double tensors = sum - memory["batch"].get<double>();
  EXPECT_NEAR(tensors, memory["arena_peak"].get<double>(), 0.03 * tensors);
  EXPECT_GT(memory["activations"].get<double>(), 0.5 * tensors);
  EXPECT_GT(memory["resident"]["peak"], memory["total"]);
}

TEST(Profile, FindsTheLargestBatchInALimitAndTriesIt) {
  Options options;
  options.arguments = {"--memory-limit", "500MiB"};
  const json found = profile(options)["largest_local_batch"];
  EXPECT_EQ(found["limit_source"], "option");
  EXPECT_EQ(found["limit_bytes"], 500 << 20);
  EXPECT_EQ(found["extrapolated"], false);
  ASSERT_EQ(found["tried"]["samples"], found["samples"]);
  EXPECT_GT(found["samples"], 48);
  EXPECT_NEAR(found["tried"]["error"].get<double>(), 0.0, 0.05);
  const double limit = 500.0 * (1 << 20);
  EXPECT_LE(found["predicted_peak_bytes"]["largest"].get<double>() + found["taken_bytes"].get<double>(), limit);
  options.arguments = {"--memory-limit", "20MiB"};
  const json tight = profile(options);
  EXPECT_EQ(tight["largest_local_batch"]["samples"], 0);
  EXPECT_EQ(tight["walls"][0]["wall"], "one_layer_too_large") << "programs alone take more";
}

TEST(Profile, DoesNotTakeAllOfAMachineToTryABatch) {
  Options options;
  options.arguments = {"--memory-limit", "900GiB"};
  const json found = profile(options)["largest_local_batch"];
  EXPECT_GT(found["samples"], 1000000);
  EXPECT_EQ(found["extrapolated"], true);
  EXPECT_THAT(found["untried"].get<std::string>(), HasSubstr("would take"));
}

TEST(Profile, EndsEarlyWhereTheRecipeHasFewerSteps) {
  Options options;
  options.steps = "100";
  options.arguments = {"--set", "train.steps=12"};
  const json found = profile(options);
  EXPECT_EQ(found["steps"]["ended_early"], true);
  EXPECT_EQ(
      found["steps"]["warmup"].get<int>() + found["steps"]["measured"].get<int>() + found["steps"]["layers"].get<int>(),
      12);
  EXPECT_GE(found["steps"]["layers"], 1);
}

TEST(Profile, KeepsItsFileAndSpeaksToPeople) {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/kept";
  const CommandResult done = testing::run_command({kConvoy, "profile", kRecipe, "--warmup", "1", "--steps", "3",
                                                   "--set", "data.limit=1000", "--set", "data.validation=100", "--set",
                                                   "model.channels=[4,8]", "--memory-limit", "1.5GiB", "--out", out});
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_TRUE(std::filesystem::exists(out + "/profile.json"));
  for (const char* word : {"conv1", "max_pool2d 1", "resident set", "largest local batch in 1.5 GiB", "the wall: "}) {
    EXPECT_THAT(done.output, HasSubstr(word));
  }
  const auto refused = [&](const std::vector<std::string>& further) {
    std::vector<std::string> arguments{kConvoy, "profile", kRecipe};
    arguments.insert(arguments.end(), further.begin(), further.end());
    const CommandResult result = testing::run_command(arguments);
    EXPECT_EQ(result.status, 2) << result.errors;
    return result.errors;
  };
  EXPECT_THAT(refused({"--out", out}), HasSubstr("not empty"));
  EXPECT_THAT(refused({"--steps", "0"}), HasSubstr("--steps"));
  EXPECT_THAT(refused({"--warmup", "-1"}), HasSubstr("--warmup"));
  EXPECT_THAT(refused({"--memory-limit", "lots"}), HasSubstr("lots"));
}

}  // namespace
}  // namespace convoy

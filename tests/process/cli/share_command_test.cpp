// share = "auto": a run measures its ranks and deals replicas out by their speed; the result stays the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/spec/replica_tree.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::CommandResult;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_softmax.toml";

// Every rank sleeps 5 ms in each forward pass, the slow one 10 ms: no rank takes the processor from another.
const std::map<std::string, std::string> kThrottled = {{"CONVOY_PLANT", "throttle:rank=1,step=0"}};

CommandResult run(const std::vector<std::string>& target, int ranks, const std::string& share,
                  const std::vector<std::string>& keys, const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> arguments = {kConvoy, "run", kRecipe, "-n", std::to_string(ranks), "--quiet"};
  arguments.insert(arguments.end(), target.begin(), target.end());
  for (const char* key : {"data.limit=960", "train.epochs=0", "train.evaluate_every=0", "train.global_batch=96",
                          "replicas.count=12", "measure.warmup_steps=2", "train.steps=14", "data.validation=0"}) {
    arguments.insert(arguments.end(), {"--set", key});
  }
  for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", key});
  arguments.insert(arguments.end(), {"--set", "parallel.share=" + share});
  return testing::run_command(arguments, environment);
}

json summary_of(const std::string& folder) { return json::parse(local_files().read(folder + "/summary.json")); }

// The 12 replicas as what a summary says was measured would deal them out.
json dealt_by(const json& shares) {
  std::vector<double> speeds;
  for (const json& ms : shares.at("micro_batch_ms")) speeds.push_back(1.0 / ms.get<double>());
  json sizes = json::array();
  for (const spec::ReplicaRange& owned : spec::deal_replicas_by_speed(12, speeds)) sizes.push_back(owned.size());
  return sizes;
}

TEST(ShareCommand, DealsReplicasOutByMeasuredSpeedAndKeepsTheResult) {
  const TemporaryFolder folder;
  const std::string even = folder.path() + "/even";
  const std::string by_speed = folder.path() + "/auto";
  ASSERT_EQ(run({"--out", even}, 1, "even", {}).status, 0);
  const CommandResult result = run({"--out", by_speed}, 2, "auto", {}, kThrottled);
  ASSERT_EQ(result.status, 0) << result.errors;
  const json found = summary_of(by_speed);
  const json& shares = found.at("shares");
  const json& replicas = shares.at("replicas");
  EXPECT_GE(shares.at("micro_batch_ms").at(0), 5.0);
  EXPECT_GE(shares.at("micro_batch_ms").at(1), 10.0);
  EXPECT_EQ(replicas, dealt_by(shares)) << shares;
  EXPECT_GT(replicas.at(0), replicas.at(1)) << "8 and 4 on a machine with nothing else to do";
  EXPECT_TRUE(found.at("ledger").at("ok").get<bool>()) << found.at("ledger");
  const std::string header = local_files().read(by_speed + "/ledger/g0001-rank-0001.jsonl").substr(0, 400);
  EXPECT_THAT(header, HasSubstr("\"shares\":" + replicas.dump()));
  EXPECT_EQ(summary_of(even).at("shares"), json({{"replicas", {12}}, {"micro_batch_ms", nullptr}}));
  EXPECT_EQ(found.at("parameters_digest"), summary_of(even).at("parameters_digest"));
}

TEST(ShareCommand, ResumesOnOtherRanksWithSharesMeasuredAnew) {
  const TemporaryFolder folder;
  const std::string whole = folder.path() + "/whole";
  const std::string stopped = folder.path() + "/stopped";
  ASSERT_EQ(run({"--out", whole}, 1, "even", {}).status, 0);
  ASSERT_EQ(run({"--out", stopped}, 2, "auto", {"train.steps=6"}, kThrottled).status, 0);
  const json first = summary_of(stopped).at("shares");
  EXPECT_GT(first.at("replicas").at(0), first.at("replicas").at(1)) << first;
  const CommandResult result = run({"--resume", stopped}, 3, "auto", {}, kThrottled);
  ASSERT_EQ(result.status, 0) << result.errors;
  const json found = summary_of(stopped);
  EXPECT_EQ(found.at("resumed_at_step"), 6);
  const json& replicas = found.at("shares").at("replicas");
  ASSERT_EQ(replicas.size(), 3u);
  EXPECT_LT(replicas.at(1), replicas.at(0)) << replicas;
  EXPECT_LT(replicas.at(1), replicas.at(2)) << replicas;
  EXPECT_TRUE(found.at("ledger").at("ok").get<bool>()) << found.at("ledger");
  EXPECT_EQ(found.at("parameters_digest"), summary_of(whole).at("parameters_digest"));
}

}  // namespace
}  // namespace convoy

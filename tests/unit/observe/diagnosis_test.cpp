// Each fault that is planted in a trace is named, alone; a trace without one names nothing.
#include "convoy/observe/trace/diagnosis.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/synthetic_trace.h"

namespace convoy::observe {
namespace {

using testing::play;
using testing::SyntheticRun;

// What is named, as "name" or "name rank".
std::vector<std::string> named(const SyntheticRun& run) {
  const Trace trace = play(run);
  std::vector<std::string> names;
  for (const Finding& finding : diagnose(trace, analyse(trace))) {
    EXPECT_FALSE(finding.words.empty() || finding.advice.empty() || finding.evidence.empty()) << finding.name;
    names.push_back(finding.rank < 0 ? finding.name : finding.name + " " + std::to_string(finding.rank));
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Diagnosis, NamesNothingInACleanRun) {
  EXPECT_EQ(named({}), Names{});
  SyntheticRun run;
  run.ranks.resize(4);
  run.ranks[1].forward *= 1.1;
  run.ranks[3].backward *= 0.95;
  run.ranks[2].input_wait = 0.3;
  run.operators = 300;
  run.operator_us = 30;
  EXPECT_EQ(named(run), Names{});
}

TEST(Diagnosis, NamesNothingForOneRankThatIsAlone) {
  SyntheticRun run;
  run.ranks.resize(1);
  run.late = true;
  EXPECT_EQ(named(run), Names{}) << "a launch by one rank moves nothing";
}

TEST(Diagnosis, NamesLaunchesAfterTheEndOfBackward) {
  SyntheticRun run;
  run.late = true;
  EXPECT_EQ(named(run), Names{"late_launch"});
  const Trace trace = play(run);
  const std::vector<Finding> findings = diagnose(trace, analyse(trace));
  const std::map<std::string, double> evidence(findings[0].evidence.begin(), findings[0].evidence.end());
  EXPECT_EQ(evidence.at("late_share"), 1.0);
  EXPECT_NEAR(evidence.at("ready_before_end_ms"), 6.0, 0.01) << "the first of four buckets in 8 ms";
}

TEST(Diagnosis, DoesNotCallALastBucketLate) {
  SyntheticRun run;
  run.late = true;
  run.buckets = {1 << 16};
  EXPECT_EQ(named(run), Names{}) << "one bucket is ready at the end of backward and not before";
}

TEST(Diagnosis, NamesWaitsStraightAfterLaunch) {
  SyntheticRun run;
  run.waits = true;
  EXPECT_EQ(named(run), Names{"wait_after_launch"});
}

TEST(Diagnosis, NamesBucketsThatAreTooLarge) {
  SyntheticRun run;
  run.bucket_bytes = 64 << 20;
  run.buckets = {1 << 18, 12 << 20};
  EXPECT_EQ(named(run), Names{"buckets_too_large"});
  run.buckets = {12 << 20};
  EXPECT_EQ(named(run), Names{"buckets_too_large"});
  run.ms_per_mib = 0.001;
  EXPECT_EQ(named(run), Names{}) << "nothing is to be won where the bytes take no time";
}

TEST(Diagnosis, DoesNotAskForHalfAParameter) {
  SyntheticRun run;
  run.bucket_bytes = 1 << 20;
  run.buckets = {1 << 20, 12 << 20};
  EXPECT_EQ(named(run), Names{}) << "a bucket far above bucket_bytes is one parameter";
}

TEST(Diagnosis, NamesBucketsThatAreTooSmall) {
  SyntheticRun run;
  run.bucket_bytes = 1 << 10;
  run.buckets.assign(40, 2048);
  run.fixed_ms = 0.05;
  EXPECT_EQ(named(run), Names{"buckets_too_small"});
  for (std::size_t i = 0; i < run.buckets.size(); i += 2) run.buckets[i] = 64 << 10;
  EXPECT_EQ(named(run), Names{"buckets_too_small"}) << "the fixed cost is found from unlike sizes, too";
  run.fixed_ms = 0.002;
  EXPECT_EQ(named(run), Names{}) << "what costs little may be small";
}

TEST(Diagnosis, NamesSlowInputAsInputOfItsRank) {
  SyntheticRun run;
  run.ranks.resize(4);
  run.ranks[2].input_wait = 12.0;
  EXPECT_EQ(named(run), Names{"slow_input 2"});
  for (auto& rank : run.ranks) rank.input_wait = 12.0;
  EXPECT_EQ(named(run), Names{"slow_input"}) << "all ranks at once";
}

TEST(Diagnosis, NamesARankThatComputesSlowly) {
  SyntheticRun run;
  run.ranks.resize(4);
  run.ranks[3].backward += 10.0;
  EXPECT_EQ(named(run), Names{"slow_rank 3"});
  run.ranks[1].input_wait = 12.0;
  EXPECT_EQ(named(run), (Names{"slow_input 1", "slow_rank 3"}));
}

TEST(Diagnosis, DoesNotCallARankSlowForItsUpdate) {
  SyntheticRun run;
  run.ranks[0].optimizer += 9.0;  // where the update is divided, a rank waits for the other inside its own
  EXPECT_EQ(named(run), Names{});
}

TEST(Diagnosis, DoesNotCallARankSlowForItsReplicas) {
  SyntheticRun run;
  run.ranks.resize(3);
  for (auto& rank : run.ranks) rank.replicas = 1;
  run.ranks[0].replicas = 2;
  run.ranks[0].forward *= 2;
  run.ranks[0].backward *= 2;
  EXPECT_EQ(named(run), Names{});
}

TEST(Diagnosis, NamesManyTinyOperations) {
  SyntheticRun run;
  run.operators = 2400;
  run.operator_us = 4.5;
  EXPECT_EQ(named(run), Names{"tiny_operations"});
  run.operators = 240;
  run.operator_us = 45;
  EXPECT_EQ(named(run), Names{}) << "few and long";
  run.operators = 1000;
  run.operator_us = 1;
  EXPECT_EQ(named(run), Names{}) << "many and tiny, but not what forward and backward consist of";
  run.operators = 2400;
  run.operator_us = 4.5;
  for (auto& rank : run.ranks) rank.optimizer = 30;
  EXPECT_EQ(named(run), Names{}) << "forward and backward are not what the step consists of";
}

}  // namespace
}  // namespace convoy::observe

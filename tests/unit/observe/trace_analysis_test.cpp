// The numbers of an analysis are those that the trace was made from.
#include "convoy/observe/trace/trace_analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/observe/trace/diagnosis.h"
#include "convoy/observe/trace/intervals.h"
#include "convoy/observe/trace/trace_report.h"
#include "tests/support/synthetic_trace.h"

namespace convoy::observe {
namespace {

using testing::play;
using testing::SyntheticRun;

TEST(Intervals, CountWhatOverlapsOnce) {
  const Intervals some({{10, 20}, {15, 30}, {30, 31}, {50, 50}, {60, 55}, {40, 45}, {12, 13}});
  EXPECT_EQ(some.parts(), (std::vector<Interval>{{10, 31}, {40, 45}}));
  EXPECT_EQ(some.length(), 26);
  const Intervals other({{0, 11}, {20, 22}, {29, 42}});
  EXPECT_EQ(some.both(other).parts(), (std::vector<Interval>{{10, 11}, {20, 22}, {29, 31}, {40, 42}}));
  EXPECT_EQ(some.without(other).parts(), (std::vector<Interval>{{11, 20}, {22, 29}, {42, 45}}));
  EXPECT_EQ(other.without(some).parts(), (std::vector<Interval>{{0, 10}, {31, 40}}));
  EXPECT_EQ(some.either(other).parts(), (std::vector<Interval>{{0, 45}}));
  EXPECT_EQ(some.both(other).length() + some.without(other).length(), some.length());
  EXPECT_EQ(Intervals().length(), 0);
}

double of(const TraceAnalysis& analysis, std::size_t rank, StepTime time) {
  return analysis.ranks[rank][static_cast<std::size_t>(time)].median;
}

// Two ranks, forward 4, backward 8, four buckets of 1 MiB which take 0.6 each: all but the last is hidden.
TEST(TraceAnalysis, SplitsHiddenFromExposedCommunication) {
  const TraceAnalysis analysis = analyse(play({}));
  ASSERT_EQ(analysis.steps.size(), 5u);
  EXPECT_EQ(analysis.steps[0].step, 10);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_NEAR(of(analysis, rank, StepTime::kForward), 4.0, 1e-9);
    EXPECT_NEAR(of(analysis, rank, StepTime::kBackward), 8.0, 1e-9);
    EXPECT_NEAR(of(analysis, rank, StepTime::kComm), 4 * 0.6 + 0.1, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kHidden), 3 * 0.6, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kExposed), 0.6 + 0.1, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kMoving), 0.6 + 0.1, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kWaiting), 0.0, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kTail), 0.7, 0.003);
    EXPECT_NEAR(of(analysis, rank, StepTime::kOwnWork), 4 + 8 + 1 + 0.5, 1e-9);
    EXPECT_NEAR(of(analysis, rank, StepTime::kStep), 14.2, 0.003);
  }
  EXPECT_NEAR(analysis.tail.median, 0.7, 0.003);
  for (const StepAnalysis& step : analysis.steps) {
    for (const RankStep& rank : step.ranks) {
      EXPECT_NEAR(rank.at(StepTime::kHidden) + rank.at(StepTime::kExposed), rank.at(StepTime::kComm), 1e-9);
      EXPECT_NEAR(rank.at(StepTime::kOwnWork) + rank.at(StepTime::kExposed) + rank.at(StepTime::kGradientNorm),
                  rank.at(StepTime::kStep), 1e-9);
    }
  }
}

TEST(TraceAnalysis, BucketsThatAreOnTheWayTogetherCountOnce) {
  SyntheticRun run;
  run.ms_per_mib = 4.0;  // 4.1 a bucket, gradients arrive every 2
  const TraceAnalysis analysis = analyse(play(run));
  EXPECT_NEAR(of(analysis, 0, StepTime::kComm), 4 * 4.1 + 0.1, 0.003);
  EXPECT_NEAR(of(analysis, 0, StepTime::kHidden), 6.0, 0.003) << "from the first launch to the end of backward";
}

TEST(TraceAnalysis, TellsWaitingForTheSlowestFromMovingBytes) {
  SyntheticRun run;
  run.ranks.resize(4);
  run.ranks[1].forward += 20.0;
  const TraceAnalysis analysis = analyse(play(run));
  for (const std::size_t rank : {0u, 2u, 3u}) {
    // While rank 1 is in its backward, its earlier buckets move for the others.
    EXPECT_NEAR(of(analysis, rank, StepTime::kWaiting), 20.0 - 3 * 0.6, 0.01);
    EXPECT_NEAR(of(analysis, rank, StepTime::kMoving), 4 * 0.6 + 0.1, 0.01);
    EXPECT_NEAR(of(analysis, rank, StepTime::kExposed), 20.7, 0.01);
    EXPECT_NEAR(of(analysis, rank, StepTime::kOwnWork), 13.5, 0.01);
  }
  EXPECT_NEAR(of(analysis, 1, StepTime::kWaiting), 0.0, 0.01);
  EXPECT_NEAR(of(analysis, 1, StepTime::kOwnWork), 33.5, 0.01);
  EXPECT_EQ(analysis.cause.rank, 1);
  EXPECT_EQ(analysis.cause.part, "forward");
  EXPECT_NEAR(analysis.cause.excess_ms, 20.0, 0.01);
  EXPECT_NEAR(analysis.cause.waited_ms, 20.0 - 3 * 0.6, 0.01);
  EXPECT_GT(analysis.cause.share, 0.99);
  EXPECT_NEAR(analysis.tail.median, 0.7, 0.01) << "waiting for a rank is no tail";
}

TEST(TraceAnalysis, NamesThePartThatMadeOthersWait) {
  for (const auto part : {&testing::SyntheticRank::input_wait, &testing::SyntheticRank::backward}) {
    SyntheticRun run;
    run.ranks.resize(3);
    run.ranks[2].*part += 9.0;
    const TraceAnalysis analysis = analyse(play(run));
    EXPECT_EQ(analysis.cause.rank, 2);
    EXPECT_EQ(analysis.cause.part, part == &testing::SyntheticRank::backward ? "backward" : "input_wait");
    EXPECT_NEAR(analysis.cause.excess_ms, 9.0, 0.01);
  }
}

TEST(TraceAnalysis, TellsWhenEachRankCameToEachCollective) {
  SyntheticRun run;
  run.ranks.resize(3);
  run.ranks[2].forward = 7.0;
  const TraceAnalysis analysis = analyse(play(run));
  const StepAnalysis& step = analysis.steps[3];
  ASSERT_EQ(step.collectives.size(), 5u);
  EXPECT_EQ(step.collectives[1].number, 1);
  EXPECT_EQ(step.collectives[1].bytes, 1 << 20);
  EXPECT_NEAR(step.collectives[1].launched_ms[0], 8.0, 0.01);
  EXPECT_NEAR(step.collectives[1].launched_ms[2], 11.0, 0.01);
  EXPECT_EQ(step.collectives[1].last_rank, 2);
  EXPECT_EQ(step.collectives[4].number, -1);
  EXPECT_NEAR(step.collectives[4].finished_ms[1], 15.7, 0.01);
}

TEST(TraceAnalysis, FollowsTheCriticalPathOverRanks) {
  SyntheticRun run;
  run.ranks.resize(3);
  run.ranks[1].forward += 5.0;
  run.ranks[2].optimizer += 2.0;
  run.steps = 1;
  const TraceAnalysis analysis = analyse(play(run));
  std::vector<std::pair<int, std::string>> path;
  double end = analysis.steps[0].path.front().begin_ms;
  for (const PathStretch& part : analysis.steps[0].path) {
    path.emplace_back(part.rank, std::string(part.part));
    EXPECT_NEAR(part.begin_ms, end, 1e-6) << "no gap before " << part.part;
    end = part.end_ms;
  }
  // Rank 2 ends last by its update; before it everybody waited for rank 1, whose forward is longest.
  const std::vector<std::pair<int, std::string>> expected = {{1, "forward"}, {1, "backward"},  {2, "moving"},
                                                             {2, "moving"},  {2, "optimizer"}, {2, "other"}};
  EXPECT_EQ(path, expected) << "the last bucket and the agreement move after rank 1's backward";
  EXPECT_NEAR(end, analysis.steps[0].ranks[2].at(StepTime::kStep), 1e-6);
  ASSERT_EQ(analysis.path.size(), 5u);
  EXPECT_EQ(analysis.path[0].part, "forward");
  EXPECT_EQ(analysis.path[0].rank, 1);
  EXPECT_NEAR(analysis.path[0].share, 9.0 / end, 0.001);
  EXPECT_EQ(analysis.path[0].steps, 1);
  double all = 0.0;
  for (const PathShare& part : analysis.path) all += part.share;
  EXPECT_NEAR(all, 1.0, 1e-9);
}

TEST(TraceAnalysis, WaitsInsideALaunchAreExposedAndNotBackward) {
  SyntheticRun run;
  run.waits = true;
  const TraceAnalysis analysis = analyse(play(run));
  EXPECT_NEAR(of(analysis, 0, StepTime::kBackward), 8.0, 0.02);
  EXPECT_NEAR(of(analysis, 0, StepTime::kExposed), 4 * 0.6 + 0.1, 0.02);
  EXPECT_NEAR(of(analysis, 0, StepTime::kHidden), 0.0, 0.02);
}

TEST(TraceAnalysis, LeavesOutStepsThatARankHasNot) {
  Trace trace = play({});
  std::erase_if(trace.ranks[1].spans, [](const Span& span) { return span.step == 12 && span.kind == SpanKind::kStep; });
  const TraceAnalysis analysis = analyse(trace);
  ASSERT_EQ(analysis.steps.size(), 4u);
  for (const StepAnalysis& step : analysis.steps) EXPECT_NE(step.step, 12);
}

TEST(TraceAnalysis, RefusesRanksWithOtherBuckets) {
  Trace trace = play({});
  std::erase_if(trace.ranks[1].spans, [](const Span& span) { return span.step == 12 && span.number == 3; });
  EXPECT_THROW(analyse(trace), Error);
}

TEST(TraceAnalysis, OfNothingIsEmpty) {
  const TraceAnalysis analysis = analyse(Trace{});
  EXPECT_TRUE(analysis.steps.empty());
  EXPECT_EQ(analysis.cause.rank, -1);
  EXPECT_TRUE(diagnose(Trace{}, analysis).empty());
  EXPECT_NE(trace_tables(Trace{}, analysis, {}).find("no step"), std::string::npos);
}

TEST(TraceReport, HasTheNumbersOfTheAnalysis) {
  SyntheticRun run;
  run.ranks.resize(3);
  run.ranks[1].forward += 20.0;
  const Trace trace = play(run);
  const TraceAnalysis analysis = analyse(trace);
  const std::vector<Finding> findings = diagnose(trace, analysis);
  const nlohmann::ordered_json json = to_json(trace, analysis, findings);
  EXPECT_EQ(json["steps"], 5);
  EXPECT_EQ(json["ranks"][1]["ms"]["own_work"]["median"], of(analysis, 1, StepTime::kOwnWork));
  EXPECT_EQ(json["ms"]["exposed"]["p95"], analysis.all[static_cast<std::size_t>(StepTime::kExposed)].p95);
  EXPECT_EQ(json["waited_for"]["rank"], 1);
  EXPECT_EQ(json["findings"][0]["name"], "slow_rank");
  EXPECT_EQ(json["findings"][0]["rank"], 1);
  EXPECT_EQ(json["by_step"].size(), 5u);
  EXPECT_EQ(json["by_step"][2]["collectives"][0]["last_rank"], 1);
  EXPECT_EQ(summary_json(trace, analysis, findings).contains("by_step"), false);
  const std::string tables = trace_tables(trace, analysis, findings);
  for (const char* words :
       {"rank 2", "own_work", "33.500", "bucket 3", "waited for most: rank 1", "slow_rank (rank 1)"}) {
    EXPECT_NE(tables.find(words), std::string::npos) << words << " is not in\n" << tables;
  }
}

}  // namespace
}  // namespace convoy::observe

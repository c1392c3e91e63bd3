// A traced run tells the truth about itself: a planted delay is found where it was planted, each planted fault is named,
// and a run without one names nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/observe/trace/trace_file.h"
#include "tests/support/chrome_trace.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::run_command;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_softmax.toml";

// Runs the recipe with these keys in place of its own, and traces it.
class TracedRun {
 public:
  explicit TracedRun(int ranks, const std::vector<std::string>& keys, const std::string& plant = "") {
    std::vector<std::string> arguments = {kConvoy, "run",  kRecipe,  "-n", std::to_string(ranks),
                                          "--out", path(), "--quiet"};
    for (const char* key : {"data.limit=2000", "train.epochs=0", "measure.warmup_steps=5", "measure.trace_steps=30",
                            "train.steps=36", "train.evaluate_every=0"}) {
      arguments.insert(arguments.end(), {"--set", key});
    }
    for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", key});
    result = run_command(arguments, {{"CONVOY_PLANT", plant}});
  }

  std::string path() const { return folder_.path() + "/out"; }
  json summary() const { return json::parse(local_files().read(path() + "/summary.json")); }

  // What is named, as "name" or "name rank".
  std::set<std::string> findings() const {
    std::set<std::string> names;
    const json summary_file = summary();
    for (const json& finding : summary_file.at("trace").at("findings")) {
      const auto name = finding.at("name").get<std::string>();
      names.insert(finding.at("rank").is_null() ? name : name + " " + std::to_string(finding.at("rank").get<int>()));
    }
    return names;
  }

  std::string tables() const { return run_command({kConvoy, "trace", path()}).output; }

  CommandResult result;

 private:
  TemporaryFolder folder_;
};

// A model whose gradients fill many buckets and take a while.
const std::vector<std::string> kWide = {"model.name=mlp", "model.hidden=[512, 512, 512, 512]", "train.global_batch=64",
                                        "replicas.count=2"};

std::vector<std::string> with(std::vector<std::string> keys, const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

constexpr double kDelay = 20.0;

double forward_of(const json& summary, int rank) {
  return summary.at("breakdown_by_rank").at(static_cast<std::size_t>(rank)).at("forward").get<double>();
}

// Whether the other ranks waited for the slowest one as long as rank 1 slept, within 15%. A busy machine wakes a sleeper
// late, so what it slept is its forward less that of the others.
bool waits_match(const json& summary) {
  for (const json& rank : summary.at("breakdown_by_rank")) {
    const double slept = forward_of(summary, 1) - forward_of(summary, rank.at("rank").get<int>());
    if (std::abs(rank.at("wait_slowest").get<double>() - slept) > 0.15 * kDelay) return false;
  }
  return true;
}

TEST(TraceCommand, FindsASleepingLayerOfOneRankInFour) {
  std::optional<TracedRun> run;
  // Where other processes take the processors, ranks wait for these too.
  for (int attempt = 0; attempt < 3 && (!run || !waits_match(run->summary())); ++attempt) {
    run.emplace(4, std::vector<std::string>{"replicas.count=4", "train.global_batch=16", "train.accumulation=1"},
                "slowlayer:rank=1,step=0");
    ASSERT_EQ(run->result.status, 0) << run->result.errors;
  }
  const json summary = run->summary();
  EXPECT_TRUE(waits_match(summary)) << summary.at("breakdown_by_rank").dump(1);
  EXPECT_GE(forward_of(summary, 1), kDelay);
  EXPECT_LT(forward_of(summary, 0), 0.5 * kDelay);
  const json own = summary.at("own_work_ms");
  EXPECT_GE(own.at(1).get<double>(), kDelay);
  EXPECT_LT(own.at(0).get<double>(), 0.5 * kDelay);
  ASSERT_EQ(summary.at("slow_ranks").size(), 1u);
  EXPECT_EQ(summary.at("slow_ranks")[0].at("rank"), 1);
  // The trace says the same.
  const json trace = summary.at("trace");
  EXPECT_EQ(trace.at("steps"), 30);
  for (const int rank : {0, 2, 3}) {
    const double waiting = trace.at("ranks")[rank].at("ms").at("waiting").at("median").get<double>();
    EXPECT_NEAR(waiting, trace.at("ranks")[1].at("ms").at("forward").at("median").get<double>(), 0.2 * kDelay);
  }
  EXPECT_EQ(trace.at("waited_for").at("rank"), 1);
  EXPECT_EQ(trace.at("waited_for").at("part"), "forward");
  EXPECT_EQ(trace.at("critical_path")[0].at("rank"), 1);
  EXPECT_EQ(trace.at("critical_path")[0].at("part"), "forward");
  EXPECT_TRUE(run->findings().contains("slow_rank 1"));
  for (const char* other : {"slow_rank 0", "slow_rank 2", "slow_rank 3", "slow_input 1", "slow_input"}) {
    EXPECT_FALSE(run->findings().contains(other)) << other;
  }
}

TEST(TraceCommand, ReadsTheTraceOfACleanRunAndNamesNothing) {
  std::optional<TracedRun> clean;
  // Another process that takes a processor makes a rank slow, and is rightly named.
  for (int attempt = 0; attempt < 3 && (!clean || !clean->findings().empty()); ++attempt) {
    clean.emplace(2, kWide);
    ASSERT_EQ(clean->result.status, 0) << clean->result.errors;
  }
  const TracedRun& run = *clean;
  EXPECT_EQ(run.findings(), std::set<std::string>{}) << run.tables();
  const std::string text = local_files().read(run.path() + "/trace.json");
  EXPECT_EQ(testing::chrome_trace_problems(text), std::vector<std::string>{});
  const observe::Trace trace = observe::read_trace(local_files(), run.path() + "/trace.json");
  ASSERT_EQ(trace.ranks.size(), 2u);
  std::set<observe::SpanKind> kinds;
  std::set<std::int64_t> steps;
  for (const observe::Span& span : trace.ranks[1].spans) {
    kinds.insert(span.kind);
    if (span.step >= 0) steps.insert(span.step);
  }
  EXPECT_EQ(kinds.size(), observe::kSpanKinds) << "every kind of span is there, evaluation and checkpoint too";
  EXPECT_EQ(steps.size(), 30u);
  EXPECT_EQ(*steps.begin(), 5) << "after the warm-up";

  const CommandResult shown = run_command({kConvoy, "trace", run.path(), "--json"});
  ASSERT_EQ(shown.status, 0) << shown.errors;
  const json found = json::parse(shown.output);
  EXPECT_EQ(found.at("by_step").size(), 30u);
  EXPECT_EQ(found.at("ms"), run.summary().at("trace").at("ms")) << "the summary has the same numbers";
  for (const json& step : found.at("by_step")) {
    for (const json& rank : step.at("ranks")) {
      EXPECT_NEAR(rank.at("hidden").get<double>() + rank.at("exposed").get<double>(), rank.at("comm").get<double>(),
                  0.2 * rank.at("step").get<double>());
      EXPECT_NEAR(rank.at("waiting").get<double>() + rank.at("moving").get<double>(), rank.at("exposed").get<double>(),
                  1e-6);
    }
    EXPECT_GE(step.at("collectives").size(), 3u);
  }
  EXPECT_NE(run.tables().find("critical path"), std::string::npos);
}

TEST(TraceCommand, NamesLaunchesAfterBackward) {
  const TracedRun run(2, with(kWide, {"parallel.overlap=false", "parallel.bucket_bytes=524288"}));
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.findings().contains("late_launch")) << run.tables();
  EXPECT_FALSE(run.findings().contains("wait_after_launch"));
}

TEST(TraceCommand, NamesWaitsStraightAfterLaunch) {
  const TracedRun run(2, with(kWide, {"parallel.bucket_bytes=524288", "comm.transport=gloo"}),
                      "impatient:rank=-1,step=0");
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.findings().contains("wait_after_launch")) << run.tables();
  EXPECT_FALSE(run.findings().contains("late_launch"));
}

TEST(TraceCommand, NamesBucketsThatAreTooLarge) {
  const TracedRun run(2, with(kWide, {"parallel.bucket_bytes=67108864", "comm.transport=gloo"}));
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.findings().contains("buckets_too_large")) << run.tables();
}

TEST(TraceCommand, NamesBucketsThatAreTooSmall) {
  std::string hidden = "model.hidden=[24";
  for (int layer = 1; layer < 30; ++layer) hidden += ", 24";
  const TracedRun run(2, {"model.name=mlp", hidden + "]", "train.global_batch=64", "replicas.count=2",
                          "parallel.bucket_bytes=1024", "comm.transport=gloo"});
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.findings().contains("buckets_too_small")) << run.tables();
}

TEST(TraceCommand, NamesSlowReadingAsInputAndNotAsCommunication) {
  const TracedRun run(2, {"replicas.count=2", "train.global_batch=16", "train.steps=20", "measure.trace_steps=14"},
                      "slowread:rank=1,step=0");
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.findings().contains("slow_input 1")) << run.tables();
  EXPECT_FALSE(run.findings().contains("slow_input 0"));
  EXPECT_FALSE(run.findings().contains("slow_rank 1"));
  const json trace = run.summary().at("trace");
  EXPECT_EQ(trace.at("waited_for").at("rank"), 1);
  EXPECT_EQ(trace.at("waited_for").at("part"), "input_wait");
  EXPECT_GE(trace.at("ranks")[1].at("ms").at("input_prepare").at("median").get<double>(), 8.0) << "8 samples of 1 ms";
}

TEST(TraceCommand, NamesManyTinyOperations) {
  std::string hidden = "model.hidden=[8";
  for (int layer = 1; layer < 40; ++layer) hidden += ", 8";
  const TracedRun run(1, {"model.name=mlp", hidden + "]", "train.global_batch=16", "replicas.count=4"});
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_EQ(run.findings(), std::set<std::string>{"tiny_operations"}) << run.tables();
}

TEST(TraceCommand, LeavesWhatEachRankSawWhenTheRunFails) {
  const TracedRun run(2, {"replicas.count=2"}, "nan:rank=1,step=12");
  EXPECT_EQ(run.result.status, 1) << run.result.errors;
  EXPECT_FALSE(local_files().exists(run.path() + "/trace.json"));
  for (const int rank : {0, 1}) {
    const std::string text = local_files().read(run.path() + "/trace.rank-" + std::to_string(rank) + ".json");
    EXPECT_EQ(testing::chrome_trace_problems(text), std::vector<std::string>{});
    EXPECT_NE(text.find("\"step\":11"), std::string::npos) << "up to the last whole step";
  }
  const CommandResult shown = run_command({kConvoy, "trace", run.path()});
  EXPECT_EQ(shown.status, 2);
  EXPECT_NE(shown.errors.find("trace.rank-0.json"), std::string::npos) << shown.errors;
}

TEST(TraceCommand, SaysHowToTraceARunThatWasNot) {
  const TracedRun run(1, {"measure.trace_steps=0", "train.steps=3"});
  ASSERT_EQ(run.result.status, 0) << run.result.errors;
  EXPECT_TRUE(run.summary().at("trace").is_null());
  const CommandResult shown = run_command({kConvoy, "trace", run.path()});
  EXPECT_EQ(shown.status, 2);
  EXPECT_NE(shown.errors.find("measure.trace_steps"), std::string::npos) << shown.errors;
  EXPECT_EQ(run_command({kConvoy, "trace", run.path() + "/nowhere"}).status, 2);
}

}  // namespace
}  // namespace convoy

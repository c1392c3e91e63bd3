// A trace is kept within its bounds, written as a valid Chrome trace, and read back as it was.
#include "convoy/observe/trace/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "convoy/base/error.h"
#include "convoy/observe/trace/trace_recorder.h"
#include "tests/support/chrome_trace.h"
#include "tests/support/ranks.h"
#include "tests/support/synthetic_trace.h"

namespace convoy::observe {
namespace {

using testing::play;
using testing::SyntheticRun;

TEST(TraceRecorder, KeepsSpansUpToItsBoundAndCountsTheRest) {
  TraceRecorder recorder(3);
  for (std::int64_t step = 0; step < 5; ++step) recorder.record({.kind = SpanKind::kStep, .step = step});
  ASSERT_EQ(recorder.spans().size(), 3u);
  EXPECT_EQ(recorder.spans()[2].step, 2);
  EXPECT_EQ(recorder.dropped(), 2);
}

TEST(Trace, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSpanKinds; ++i) {
    const auto kind = static_cast<SpanKind>(i);
    names.insert(to_string(kind));
    EXPECT_EQ(try_span_kind(to_string(kind)), kind);
  }
  EXPECT_EQ(names.size(), kSpanKinds);
  EXPECT_FALSE(try_span_kind("bucket 3"));
}

TEST(Trace, GoesToAnotherRankAndBack) {
  RankTrace trace = play({}).ranks[1];
  trace.host = 3;
  trace.clock_offset_ns = -77;
  trace.clock_uncertainty_ns = 5;
  trace.dropped = 2;
  std::vector<std::int64_t> words = to_words(trace);
  EXPECT_EQ(from_words(words), trace);
  words.pop_back();
  EXPECT_THROW(from_words(words), Error);
  EXPECT_THROW(from_words({}), Error);
  words = to_words(trace);
  words[7] = 99;  // the first span's kind
  EXPECT_THROW(from_words(words), Error);
}

TEST(Trace, ComesOnOneClockThatStartsAtItsEarliestSpan) {
  Trace trace = play({});
  const Trace before = trace;
  for (RankTrace& rank : trace.ranks) {
    rank.clock_offset_ns = rank.rank == 1 ? -5'000'000 : 2'000;
    for (Span& span : rank.spans) {
      span.begin_ns += 40'000'000;
      span.end_ns += 40'000'000;
      if (span.launched_ns >= 0) span.launched_ns += 40'000'000;
      if (span.returned_ns >= 0) span.returned_ns += 40'000'000;
    }
    shift_to_common_clock(rank);
  }
  start_at_zero(trace);
  EXPECT_EQ(trace.ranks[1].spans[0].begin_ns, 0) << "rank 1 is 5 ms early, so its first span is the first of all";
  for (std::size_t i = 0; i < trace.ranks[0].spans.size(); ++i) {
    EXPECT_EQ(trace.ranks[0].spans[i].end_ns, before.ranks[0].spans[i].end_ns + 5'002'000);
    EXPECT_EQ(trace.ranks[1].spans[i].end_ns, before.ranks[1].spans[i].end_ns);
    const std::int64_t launched = before.ranks[0].spans[i].launched_ns;
    EXPECT_EQ(trace.ranks[0].spans[i].launched_ns, launched < 0 ? -1 : launched + 5'002'000);
  }
}

TEST(TraceFile, IsAValidChromeTraceAndComesBackAsItWas) {
  SyntheticRun run;
  run.ranks.resize(3);
  run.ranks[2].forward = 6.0;
  run.operators = 120;
  run.operator_us = 7.25;
  Trace trace = play(run);
  trace.ranks[1].host = 1;
  trace.ranks[1].clock_offset_ns = -1234567;
  trace.ranks[1].clock_uncertainty_ns = 8901;
  trace.ranks[2].dropped = 4;
  trace.ranks[0].spans.push_back({.kind = SpanKind::kCheckpoint, .begin_ns = 1, .end_ns = 7});
  MemoryFiles files;
  files.make_directories("run");
  write_trace(files, "run/trace.json", trace);
  const std::string text = files.read("run/trace.json");
  EXPECT_EQ(testing::chrome_trace_problems(text), std::vector<std::string>{});
  EXPECT_EQ(read_trace(files, "run/trace.json"), trace);
}

TEST(TraceFile, ShowsABucketFromReadyOverLaunchedToFinished) {
  SyntheticRun run;
  run.steps = 1;
  run.late = true;
  const Trace trace = play(run);
  const nlohmann::json file = nlohmann::json::parse(to_chrome_trace(trace));
  std::vector<double> moments;
  for (const auto& event : file["traceEvents"]) {
    if (event.value("id", "") == "1.10.2") moments.push_back(event["ts"].get<double>());
  }
  const Span* bucket = nullptr;
  for (const Span& span : trace.ranks[1].spans) {
    if (span.kind == SpanKind::kBucket && span.number == 2) bucket = &span;
  }
  ASSERT_NE(bucket, nullptr);
  const std::vector<double> expected = {static_cast<double>(bucket->begin_ns) / 1000,
                                        static_cast<double>(bucket->launched_ns) / 1000,
                                        static_cast<double>(bucket->end_ns) / 1000};
  EXPECT_EQ(moments, expected);
  EXPECT_LT(moments[0] + 1000, moments[1]) << "launched only when backward was over";
}

TEST(TraceFile, OfFourRanksAndAHundredStepsIsSmall) {
  SyntheticRun run;
  run.ranks.resize(4);
  run.steps = 100;
  run.buckets.assign(60, 1 << 16);
  const std::string text = to_chrome_trace(play(run));
  EXPECT_LT(text.size(), 20'000'000u);
  EXPECT_EQ(testing::chrome_trace_problems(text), std::vector<std::string>{});
}

TEST(TraceFile, NamesFileAndEventThatCannotBeRead) {
  MemoryFiles files;
  const auto message_of = [&](const std::string& text) {
    const std::string_view piece(text);
    files.write("t.json", std::span(&piece, 1));
    const Error error = testing::error_of([&] { read_trace(files, "t.json"); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(error.message().find("t.json"), std::string::npos) << error.message();
    return error.message();
  };
  const std::string good = to_chrome_trace(play({}));
  EXPECT_NE(message_of(good.substr(0, good.size() / 2)).find("no JSON"), std::string::npos);
  EXPECT_NE(message_of("[]").find("traceEvents"), std::string::npos);
  EXPECT_NE(message_of("{\"traceEvents\":[]}").find("otherData"), std::string::npos);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return message_of(text);
  };
  EXPECT_NE(replaced("\"name\":\"forward\"", "\"name\":\"sideways\"").find("'sideways'"), std::string::npos);
  EXPECT_NE(replaced("\"convoy_trace\":1", "\"convoy_trace\":9").find("version"), std::string::npos);
  EXPECT_NE(replaced("\"ready\":", "\"raedy\":").find("event "), std::string::npos);
  EXPECT_NE(replaced("\"dur\":", "\"dur\":-").find("event "), std::string::npos);
  EXPECT_NE(replaced("\"ph\":\"X\",\"pid\":0", "\"ph\":\"X\",\"pid\":7").find("process 7"), std::string::npos);
}

}  // namespace
}  // namespace convoy::observe

#include "convoy/observe/trace/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/text.h"
#include "convoy/observe/quantile.h"
#include "convoy/observe/trace/step_timeline.h"

namespace convoy::observe {
namespace {

using nlohmann::ordered_json;

// At most so many parts of the critical path are shown.
constexpr std::size_t kShownParts = 8;

// Waiting for less of the step than this is not worth a line.
constexpr double kFeltShare = 0.01;

// The numbers in the order in which people look at them: the step's own parts, then what goes on beside them.
constexpr std::array<StepTime, kStepTimes> kShown = {
    StepTime::kStep,    StepTime::kInputWait,    StepTime::kForward,   StepTime::kBackward, StepTime::kWaiting,
    StepTime::kMoving,  StepTime::kGradientNorm, StepTime::kOptimizer, StepTime::kOther,    StepTime::kOwnWork,
    StepTime::kExposed, StepTime::kHidden,       StepTime::kComm,      StepTime::kTail,     StepTime::kInputPrepare};

ordered_json to_json(const Spread& spread) { return {{"median", spread.median}, {"p95", spread.p95}}; }

ordered_json spreads_json(const std::array<Spread, kStepTimes>& spreads) {
  ordered_json json;
  for (std::size_t i = 0; i < kStepTimes; ++i) {
    json[std::string(to_string(static_cast<StepTime>(i)))] = to_json(spreads[i]);
  }
  return json;
}

ordered_json cause_json(const WaitCause& cause) {
  if (cause.rank < 0) return nullptr;
  return {{"rank", cause.rank},
          {"part", std::string(cause.part)},
          {"excess_ms", cause.excess_ms},
          {"waited_ms", cause.waited_ms},
          {"share", cause.share}};
}

ordered_json findings_json(const std::vector<Finding>& findings) {
  ordered_json list = ordered_json::array();
  for (const Finding& finding : findings) {
    ordered_json evidence;
    for (const auto& [name, value] : finding.evidence) evidence[name] = value;
    list.push_back({{"name", finding.name},
                    {"rank", finding.rank < 0 ? ordered_json(nullptr) : ordered_json(finding.rank)},
                    {"words", finding.words},
                    {"advice", finding.advice},
                    {"evidence", evidence}});
  }
  return list;
}

ordered_json step_json(const StepAnalysis& step) {
  ordered_json json = {{"step", step.step}, {"tail_ms", step.tail_ms}, {"waited_for_ms", step.waited_for_ms}};
  json["ranks"] = ordered_json::array();
  for (const RankStep& rank : step.ranks) {
    ordered_json numbers;
    for (std::size_t i = 0; i < kStepTimes; ++i) {
      numbers[std::string(to_string(static_cast<StepTime>(i)))] = rank.ms[i];
    }
    json["ranks"].push_back(std::move(numbers));
  }
  json["collectives"] = ordered_json::array();
  for (const Arrivals& one : step.collectives) {
    json["collectives"].push_back({{"bucket", one.number < 0 ? ordered_json(nullptr) : ordered_json(one.number)},
                                   {"bytes", one.bytes},
                                   {"launched_ms", one.launched_ms},
                                   {"finished_ms", one.finished_ms},
                                   {"last_rank", one.last_rank}});
  }
  json["critical_path"] = ordered_json::array();
  for (const PathStretch& part : step.path) {
    json["critical_path"].push_back(
        {{"rank", part.rank}, {"part", std::string(part.part)}, {"begin_ms", part.begin_ms}, {"end_ms", part.end_ms}});
  }
  return json;
}

std::string ms(double value) { return fmt::format("{:.3f}", value); }

std::string times_table(const TraceAnalysis& analysis) {
  std::vector<std::string> heads = {"ms, median"};
  for (std::size_t rank = 0; rank < analysis.ranks.size(); ++rank) heads.push_back(fmt::format("rank {}", rank));
  heads.insert(heads.end(), {"all", "p95"});
  TextTable table(heads);
  for (const StepTime time : kShown) {
    const auto index = static_cast<std::size_t>(time);
    std::vector<std::string> row = {std::string(to_string(time))};
    for (const auto& rank : analysis.ranks) row.push_back(ms(rank[index].median));
    row.insert(row.end(), {ms(analysis.all[index].median), ms(analysis.all[index].p95)});
    table.add(std::move(row));
  }
  return table.str();
}

// How late each rank came to each collective, after the first one to come, in the median step.
std::string arrivals_table(const TraceAnalysis& analysis) {
  if (analysis.steps.empty() || analysis.steps.back().collectives.empty()) return "";
  std::vector<std::string> heads = {"ms after the first to launch", "bytes"};
  for (std::size_t rank = 0; rank < analysis.ranks.size(); ++rank) heads.push_back(fmt::format("rank {}", rank));
  TextTable table(heads);
  const std::size_t count = analysis.steps.back().collectives.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Arrivals& newest = analysis.steps.back().collectives[i];
    std::vector<std::vector<double>> late(analysis.ranks.size());
    for (const StepAnalysis& step : analysis.steps) {
      if (step.collectives.size() != count) continue;
      const std::vector<double>& launched = step.collectives[i].launched_ms;
      const double first = *std::min_element(launched.begin(), launched.end());
      for (std::size_t rank = 0; rank < late.size(); ++rank) late[rank].push_back(launched[rank] - first);
    }
    std::vector<std::string> row = {newest.number < 0 ? "agreement" : fmt::format("bucket {}", newest.number),
                                    newest.bytes > 0 ? format_bytes(static_cast<std::uint64_t>(newest.bytes)) : "-"};
    for (const std::vector<double>& one : late) row.push_back(ms(median(one)));
    table.add(std::move(row));
  }
  return table.str();
}

std::string path_text(const TraceAnalysis& analysis) {
  TextTable table({"critical path", "rank", "share", "steps"});
  for (std::size_t i = 0; i < std::min(kShownParts, analysis.path.size()); ++i) {
    const PathShare& part = analysis.path[i];
    table.add({std::string(part.part), fmt::format("{}", part.rank), fmt::format("{:.1f}%", 100 * part.share),
               fmt::format("{}", part.steps)});
  }
  return table.str();
}

std::string cause_text(const TraceAnalysis& analysis) {
  const WaitCause& cause = analysis.cause;
  if (cause.rank < 0) return "";
  if (cause.waited_ms < kFeltShare * analysis.all[static_cast<std::size_t>(StepTime::kStep)].median) {
    return "no rank was waited for in the median step\n";
  }
  return fmt::format(
      "waited for most: rank {} ({:.0f}% of all waiting, {} ms of a step by each other rank); its {} takes {} ms "
      "longer "
      "than the others'\n",
      cause.rank, 100 * cause.share, ms(cause.waited_ms), cause.part, ms(cause.excess_ms));
}

std::string clock_text(const Trace& trace) {
  std::string text;
  for (const RankTrace& rank : trace.ranks) {
    if (rank.clock_uncertainty_ns > 0) {
      text += fmt::format("rank {}'s clock: {:+.1f} us to rank 0's, known to {:.1f} us\n", rank.rank,
                          static_cast<double>(rank.clock_offset_ns) / 1000,
                          static_cast<double>(rank.clock_uncertainty_ns) / 1000);
    }
    if (rank.dropped > 0) text += fmt::format("rank {} had no room for {} spans\n", rank.rank, rank.dropped);
  }
  return text;
}

}  // namespace

ordered_json summary_json(const Trace& trace, const TraceAnalysis& analysis, const std::vector<Finding>& findings) {
  ordered_json json;
  json["steps"] = analysis.steps.size();
  json["ms"] = spreads_json(analysis.all);
  json["ranks"] = ordered_json::array();
  for (std::size_t rank = 0; rank < analysis.ranks.size(); ++rank) {
    json["ranks"].push_back({{"rank", trace.ranks[rank].rank},
                             {"dropped", trace.ranks[rank].dropped},
                             {"ms", spreads_json(analysis.ranks[rank])}});
  }
  json["tail_ms"] = to_json(analysis.tail);
  json["waited_for"] = cause_json(analysis.cause);
  json["critical_path"] = ordered_json::array();
  for (const PathShare& part : analysis.path) {
    json["critical_path"].push_back(
        {{"rank", part.rank}, {"part", std::string(part.part)}, {"share", part.share}, {"steps", part.steps}});
  }
  json["findings"] = findings_json(findings);
  return json;
}

ordered_json to_json(const Trace& trace, const TraceAnalysis& analysis, const std::vector<Finding>& findings) {
  ordered_json json = {{"task", trace.task}};
  json.update(summary_json(trace, analysis, findings));
  json["by_step"] = ordered_json::array();
  for (const StepAnalysis& step : analysis.steps) json["by_step"].push_back(step_json(step));
  return json;
}

std::string trace_tables(const Trace& trace, const TraceAnalysis& analysis, const std::vector<Finding>& findings) {
  std::string text = fmt::format("{}: {} steps of {} rank{}\n", trace.task, analysis.steps.size(), trace.ranks.size(),
                                 trace.ranks.size() == 1 ? "" : "s");
  text += clock_text(trace);
  if (analysis.steps.empty()) return text + "no step was recorded by all ranks\n";
  text += "\n" + times_table(analysis) + "\n" + arrivals_table(analysis) + "\n" + path_text(analysis);
  text += fmt::format("\ntail after the last rank's backward: {} ms (p95 {})\n", ms(analysis.tail.median),
                      ms(analysis.tail.p95));
  text += cause_text(analysis);
  text += "\n";
  if (findings.empty()) text += "nothing is wrong that a trace shows\n";
  for (const Finding& finding : findings) {
    text += fmt::format("{}{}: {}\n  advice: {}\n", finding.name,
                        finding.rank < 0 ? "" : fmt::format(" (rank {})", finding.rank), finding.words, finding.advice);
  }
  return text;
}

}  // namespace convoy::observe

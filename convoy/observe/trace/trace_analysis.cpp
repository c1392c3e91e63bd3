#include "convoy/observe/trace/trace_analysis.h"

#include <algorithm>
#include <map>
#include <utility>

#include "convoy/observe/quantile.h"
#include "convoy/observe/trace/step_timeline.h"

namespace convoy::observe {
namespace {

constexpr std::array<std::string_view, kStepTimes> kNames = {
    "step",    "input_prepare", "input_wait",    "forward",   "backward", "comm",     "hidden", "exposed",
    "waiting", "moving",        "gradient_norm", "optimizer", "other",    "own_work", "tail"};

// What a rank can do longer than others, so that they wait for it.
constexpr std::array<StepTime, 5> kOwnParts = {StepTime::kInputWait, StepTime::kForward, StepTime::kBackward,
                                               StepTime::kOptimizer, StepTime::kOther};

double ms_of(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

std::string_view part_name(SpanKind kind) {
  if (kind == SpanKind::kStep) return "other";
  if (kind == SpanKind::kCommWait) return "moving";
  return to_string(kind);
}

// When collectives were on their way at a rank, and when their bytes could move.
struct Communication {
  Intervals on_the_way;
  Intervals moving;
};

Communication communication_of(const StepTimeline& step, std::size_t rank) {
  std::vector<Interval> on_the_way;
  std::vector<Interval> moving;
  for (const CollectiveTimes& times : step.collectives) {
    on_the_way.push_back({times.launched[rank], times.finished[rank]});
    moving.push_back({times.started[rank], times.finished[rank]});
  }
  return {Intervals(std::move(on_the_way)), Intervals(std::move(moving))};
}

RankStep numbers_of(const StepTimeline& step, std::size_t rank) {
  const RankTimeline& line = step.ranks[rank];
  const Communication communication = communication_of(step, rank);
  const Intervals exposed = line.of(SpanKind::kCommWait);
  const std::int64_t moving = exposed.both(communication.moving).length();
  RankStep numbers;
  const auto set = [&](StepTime time, std::int64_t ns) { numbers.ms[static_cast<std::size_t>(time)] = ms_of(ns); };
  set(StepTime::kStep, line.step.length());
  set(StepTime::kInputPrepare, line.input_prepare.length());
  set(StepTime::kInputWait, line.of(SpanKind::kInputWait).length());
  set(StepTime::kForward, line.of(SpanKind::kForward).length());
  set(StepTime::kBackward, line.of(SpanKind::kBackward).length());
  set(StepTime::kComm, communication.on_the_way.length());
  set(StepTime::kHidden, communication.on_the_way.without(exposed).length());
  set(StepTime::kExposed, exposed.length());
  set(StepTime::kWaiting, exposed.length() - moving);
  set(StepTime::kMoving, moving);
  set(StepTime::kGradientNorm, line.of(SpanKind::kGradientNorm).length());
  set(StepTime::kOptimizer, line.of(SpanKind::kOptimizer).length());
  set(StepTime::kOther, line.of(SpanKind::kStep).length());
  double own = 0.0;
  for (const StepTime part : kOwnParts) own += numbers.at(part);
  numbers.ms[static_cast<std::size_t>(StepTime::kOwnWork)] = own;
  std::int64_t end = line.backward_end;
  for (const CollectiveTimes& times : step.collectives) end = std::max(end, times.finished[rank]);
  set(StepTime::kTail, end - line.backward_end);
  return numbers;
}

// While a rank waits and the next collective has not been launched by all, it waits for the last to launch it.
std::vector<double> waited_for(const StepTimeline& step) {
  std::vector<double> waited(step.ranks.size(), 0.0);
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    const Intervals exposed = step.ranks[rank].of(SpanKind::kCommWait);
    std::int64_t free = step.ranks[rank].step.begin;
    for (const CollectiveTimes& times : step.collectives) {
      const Intervals held_up(std::vector<Interval>{{free, times.arrival}});
      waited[static_cast<std::size_t>(times.last_rank)] += ms_of(exposed.both(held_up).length());
      free = std::max(free, times.finished[rank]);
    }
  }
  return waited;
}

StepAnalysis analyse_step(const StepTimeline& step) {
  StepAnalysis analysis;
  analysis.step = step.step;
  std::int64_t zero = step.ranks.front().step.begin;
  for (const RankTimeline& line : step.ranks) zero = std::min(zero, line.step.begin);
  const auto after_zero = [zero](std::int64_t ns) { return ms_of(ns - zero); };
  std::int64_t backward_end = zero;
  std::int64_t end = zero;
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    analysis.ranks.push_back(numbers_of(step, rank));
    backward_end = std::max(backward_end, step.ranks[rank].backward_end);
  }
  for (const CollectiveTimes& times : step.collectives) {
    Arrivals arrivals{times.number, times.bytes, {}, {}, times.last_rank};
    for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
      arrivals.launched_ms.push_back(after_zero(times.launched[rank]));
      arrivals.finished_ms.push_back(after_zero(times.finished[rank]));
      end = std::max(end, times.finished[rank]);
    }
    analysis.collectives.push_back(std::move(arrivals));
  }
  analysis.tail_ms = ms_of(std::max<std::int64_t>(end - backward_end, 0));
  analysis.waited_for_ms = waited_for(step);
  for (const PathPart& part : critical_path(step)) {
    analysis.path.push_back({part.rank, part_name(part.kind), after_zero(part.begin), after_zero(part.end)});
  }
  return analysis;
}

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {median(values), p95(values)};
}

void summarise_times(TraceAnalysis& analysis, std::size_t ranks) {
  analysis.ranks.resize(ranks);
  for (std::size_t time = 0; time < kStepTimes; ++time) {
    std::vector<double> all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::vector<double> own;
      for (const StepAnalysis& step : analysis.steps) own.push_back(step.ranks[rank].ms[time]);
      analysis.ranks[rank][time] = spread_of(own);
      all.insert(all.end(), own.begin(), own.end());
    }
    analysis.all[time] = spread_of(all);
  }
  std::vector<double> tails;
  for (const StepAnalysis& step : analysis.steps) tails.push_back(step.tail_ms);
  analysis.tail = spread_of(tails);
}

void summarise_path(TraceAnalysis& analysis) {
  std::map<std::pair<int, std::string_view>, std::map<std::int64_t, double>> parts;
  double all = 0.0;
  for (const StepAnalysis& step : analysis.steps) {
    for (const PathStretch& stretch : step.path) {
      parts[{stretch.rank, stretch.part}][step.step] += stretch.end_ms - stretch.begin_ms;
      all += stretch.end_ms - stretch.begin_ms;
    }
  }
  for (const auto& [key, by_step] : parts) {
    PathShare share{key.first, key.second, 0.0, static_cast<std::int64_t>(by_step.size())};
    for (const auto& one : by_step) share.share += one.second / all;
    analysis.path.push_back(share);
  }
  std::stable_sort(analysis.path.begin(), analysis.path.end(),
                   [](const PathShare& a, const PathShare& b) { return a.share > b.share; });
}

// The part of a rank's own work that is longest beyond the middle of the other ranks'.
void find_part(const TraceAnalysis& analysis, WaitCause& cause) {
  const auto culprit = static_cast<std::size_t>(cause.rank);
  cause.excess_ms = -1.0;
  for (const StepTime part : kOwnParts) {
    std::vector<double> excess;
    for (const StepAnalysis& step : analysis.steps) {
      std::vector<double> others;
      for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
        if (rank != culprit) others.push_back(step.ranks[rank].at(part));
      }
      excess.push_back(step.ranks[culprit].at(part) - median(others));
    }
    const double middle = median(excess);
    if (middle <= cause.excess_ms) continue;
    cause.excess_ms = middle;
    cause.part = to_string(part);
  }
}

void find_cause(TraceAnalysis& analysis, std::size_t ranks) {
  if (ranks < 2 || analysis.steps.empty()) return;
  std::vector<double> sums(ranks, 0.0);
  double all = 0.0;
  for (const StepAnalysis& step : analysis.steps) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      sums[rank] += step.waited_for_ms[rank];
      all += step.waited_for_ms[rank];
    }
  }
  if (all <= 0) return;
  WaitCause& cause = analysis.cause;
  const auto most = std::max_element(sums.begin(), sums.end());
  cause.rank = static_cast<int>(most - sums.begin());
  cause.share = *most / all;
  std::vector<double> waited;
  for (const StepAnalysis& step : analysis.steps) {
    waited.push_back(step.waited_for_ms[static_cast<std::size_t>(cause.rank)] / static_cast<double>(ranks - 1));
  }
  cause.waited_ms = median(waited);
  find_part(analysis, cause);
}

}  // namespace

std::string_view to_string(StepTime time) { return kNames[static_cast<std::size_t>(time)]; }

TraceAnalysis analyse(const Trace& trace) {
  TraceAnalysis analysis;
  for (const StepTimeline& step : step_timelines(trace)) analysis.steps.push_back(analyse_step(step));
  summarise_times(analysis, trace.ranks.size());
  summarise_path(analysis);
  find_cause(analysis, trace.ranks.size());
  return analysis;
}

}  // namespace convoy::observe

#include "convoy/observe/trace/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

bool is_driver_part(SpanKind kind) {
  return kind == SpanKind::kInputWait || kind == SpanKind::kForward || kind == SpanKind::kBackward ||
         kind == SpanKind::kCommWait || kind == SpanKind::kGradientNorm || kind == SpanKind::kOptimizer;
}

bool is_collective(const Span& span) { return span.kind == SpanKind::kBucket || span.kind == SpanKind::kAgreement; }

// All spans of one rank in one step.
using StepSpans = std::vector<const Span*>;
using SpansByStep = std::map<std::int64_t, StepSpans>;

SpansByStep by_step(const RankTrace& trace) {
  SpansByStep steps;
  for (const Span& span : trace.spans) {
    if (span.step >= 0) steps[span.step].push_back(&span);
  }
  return steps;
}

const Span* find_step(const StepSpans& spans) {
  const auto found =
      std::find_if(spans.begin(), spans.end(), [](const Span* span) { return span->kind == SpanKind::kStep; });
  return found == spans.end() ? nullptr : *found;
}

void append(std::vector<DriverPart>& parts, SpanKind kind, std::int64_t begin, std::int64_t end) {
  if (end <= begin) return;
  if (!parts.empty() && parts.back().kind == kind && parts.back().end == begin) {
    parts.back().end = end;
  } else {
    parts.push_back({kind, begin, end});
  }
}

// Adds [begin, end) of a kind, cut where the driver waited inside a launch.
void append_cut(std::vector<DriverPart>& parts, const DriverPart& part, const Intervals& waits) {
  std::int64_t at = part.begin;
  for (const Interval& wait : waits.parts()) {
    if (wait.end <= at || wait.begin >= part.end) continue;
    append(parts, part.kind, at, wait.begin);
    append(parts, SpanKind::kCommWait, std::max(at, wait.begin), std::min(wait.end, part.end));
    at = wait.end;
  }
  append(parts, part.kind, at, part.end);
}

std::vector<DriverPart> driver_parts(const StepSpans& spans, const Interval& step) {
  std::vector<Interval> waits;
  std::vector<const Span*> ordered;
  for (const Span* span : spans) {
    if (is_driver_part(span->kind)) ordered.push_back(span);
    if (span->kind == SpanKind::kBucket && span->returned_ns >= span->end_ns) {
      waits.push_back({span->launched_ns, span->returned_ns});
    }
  }
  std::sort(ordered.begin(), ordered.end(), [](const Span* a, const Span* b) { return a->begin_ns < b->begin_ns; });
  const Intervals launches(std::move(waits));
  std::vector<DriverPart> parts;
  std::int64_t at = step.begin;
  for (const Span* span : ordered) {
    const std::int64_t begin = std::clamp(span->begin_ns, at, step.end);
    const std::int64_t end = std::clamp(span->end_ns, begin, step.end);
    append_cut(parts, {SpanKind::kStep, at, begin}, launches);
    append_cut(parts, {span->kind, begin, end}, launches);
    at = end;
  }
  append_cut(parts, {SpanKind::kStep, at, step.end}, launches);
  return parts;
}

RankTimeline timeline_of(const StepSpans& spans, const Span& step) {
  RankTimeline timeline;
  timeline.step = {step.begin_ns, step.end_ns};
  timeline.parts = driver_parts(spans, timeline.step);
  timeline.backward_end = step.begin_ns;
  std::vector<Interval> prepared;
  for (const Span* span : spans) {
    if (span->kind == SpanKind::kInputPrepare) prepared.push_back({span->begin_ns, span->end_ns});
    if (span->kind == SpanKind::kBackward) timeline.backward_end = std::max(timeline.backward_end, span->end_ns);
    if (span->operators < 0) continue;
    timeline.operators = std::max<std::int64_t>(timeline.operators, 0) + span->operators;
    timeline.operator_ns = std::max<std::int64_t>(timeline.operator_ns, 0) + span->operator_ns;
  }
  timeline.input_prepare = Intervals(std::move(prepared));
  return timeline;
}

// The collectives of one rank: buckets by number, then the agreement.
std::vector<const Span*> collectives_of(const StepSpans& spans) {
  std::vector<const Span*> found;
  for (const Span* span : spans) {
    if (is_collective(*span)) found.push_back(span);
  }
  std::stable_sort(found.begin(), found.end(), [](const Span* a, const Span* b) {
    if (a->kind != b->kind) return a->kind == SpanKind::kBucket;
    return a->number < b->number;
  });
  return found;
}

CollectiveTimes times_of(const std::vector<const Span*>& by_rank) {
  CollectiveTimes times;
  const Span& first = *by_rank.front();
  times.number = first.kind == SpanKind::kAgreement ? kAgreementNumber : first.number;
  times.bytes = first.bytes;
  for (const Span* span : by_rank) {
    times.ready.push_back(span->begin_ns);
    times.launched.push_back(span->launched_ns);
    times.returned.push_back(span->returned_ns);
    times.finished.push_back(span->end_ns);
  }
  const auto last = std::max_element(times.launched.begin(), times.launched.end());
  times.last_rank = static_cast<int>(last - times.launched.begin());
  times.arrival = *last;
  return times;
}

void add_collectives(StepTimeline& step, const std::vector<const StepSpans*>& spans) {
  std::vector<std::vector<const Span*>> by_rank;
  for (const StepSpans* rank : spans) by_rank.push_back(collectives_of(*rank));
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].size() == by_rank.front().size()) continue;
    throw Error(ErrorCode::kCorrupt, fmt::format("step {} has {} collectives at rank {} and {} at rank 0", step.step,
                                                 by_rank[rank].size(), rank, by_rank.front().size()));
  }
  std::vector<std::int64_t> free(by_rank.size());
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) free[rank] = step.ranks[rank].step.begin;
  for (std::size_t i = 0; i < by_rank.front().size(); ++i) {
    std::vector<const Span*> one;
    for (const auto& rank : by_rank) one.push_back(rank[i]);
    CollectiveTimes times = times_of(one);
    for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
      times.started.push_back(std::min(std::max(times.arrival, free[rank]), times.finished[rank]));
      free[rank] = std::max(free[rank], times.finished[rank]);
    }
    step.collectives.push_back(std::move(times));
  }
}

}  // namespace

Intervals RankTimeline::of(SpanKind kind) const {
  std::vector<Interval> found;
  for (const DriverPart& part : parts) {
    if (part.kind == kind) found.push_back({part.begin, part.end});
  }
  return Intervals(std::move(found));
}

std::vector<StepTimeline> step_timelines(const Trace& trace) {
  std::vector<SpansByStep> ranks;
  for (const RankTrace& rank : trace.ranks) ranks.push_back(by_step(rank));
  std::vector<StepTimeline> steps;
  if (ranks.empty()) return steps;
  for (const auto& entry : ranks.front()) {
    StepTimeline step;
    step.step = entry.first;
    std::vector<const StepSpans*> spans;
    for (const SpansByStep& rank : ranks) {
      const auto found = rank.find(step.step);
      const Span* whole = found == rank.end() ? nullptr : find_step(found->second);
      if (whole == nullptr) break;
      spans.push_back(&found->second);
      step.ranks.push_back(timeline_of(found->second, *whole));
    }
    if (spans.size() != ranks.size()) continue;
    add_collectives(step, spans);
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace convoy::observe

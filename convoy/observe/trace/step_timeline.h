// A step of a trace with all ranks side by side: who launched which collective when, and when its bytes could move.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/observe/trace/intervals.h"
#include "convoy/observe/trace/trace.h"

namespace convoy::observe {

/// The number that stands for the agreement among collectives.
inline constexpr std::int64_t kAgreementNumber = -1;

/// One collective of a step; the vectors are by rank, in nanoseconds of the trace's clock.
struct CollectiveTimes {
  /// The bucket, or kAgreementNumber.
  std::int64_t number = kAgreementNumber;
  /// Its size.
  std::int64_t bytes = 0;
  /// See Span.
  std::vector<std::int64_t> ready, launched, returned, finished;
  /// The rank that launched it last, and when: before that no byte of it could move.
  int last_rank = 0;
  /// When the last rank launched it.
  std::int64_t arrival = 0;
  /// From when its bytes moved at each rank: all had launched it, and the one before it was finished there.
  std::vector<std::int64_t> started;
};

/// What a driver does in a stretch of a step.
struct DriverPart {
  /// Its kind; kStep stands for what no other span covers.
  SpanKind kind = SpanKind::kStep;
  /// Its time.
  std::int64_t begin = 0, end = 0;
};

/// One step at one rank.
struct RankTimeline {
  /// The step's span.
  Interval step;
  /// What the driver did, without gaps or overlaps from the step's begin to its end. Time in which a launch did not
  /// return until its collective was finished is kCommWait here, wherever it lies.
  std::vector<DriverPart> parts;
  /// The loader's work on this step's batches, whenever it was.
  Intervals input_prepare;
  /// Operators and their processor time in nanoseconds, where they were counted; -1 where not.
  std::int64_t operators = -1, operator_ns = -1;
  /// The end of the last backward pass; the step's begin when there was none.
  std::int64_t backward_end = 0;

  /// Returns when the driver was in a part of this kind.
  Intervals of(SpanKind kind) const;
};

/// One step at all ranks.
struct StepTimeline {
  std::int64_t step = 0;
  /// By rank.
  std::vector<RankTimeline> ranks;
  /// In the order in which they run.
  std::vector<CollectiveTimes> collectives;
};

/// Returns the steps that every rank recorded whole, in order.
/// Errors:     kCorrupt naming rank and step when ranks have different buckets
std::vector<StepTimeline> step_timelines(const Trace& trace);

}  // namespace convoy::observe

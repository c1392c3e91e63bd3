// The critical path of a step: the chain of work, on whichever ranks, that no rank could have shortened the step without.
//
// It is found backwards from the step's end. Where a driver worked, the path goes on at the beginning of that work. Where
// it waited for a collective, the path goes through the bytes' moving, and from there to the rank that launched it last.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/observe/trace/step_timeline.h"

namespace convoy::observe {

/// A stretch of the critical path.
struct PathPart {
  /// The rank that it lies on.
  int rank = 0;
  /// What it is: a part of the driver's work, kStep for the rest of the step, or kCommWait for bytes that move.
  SpanKind kind = SpanKind::kStep;
  /// Bytes that move: of which collective.
  std::int64_t collective = 0;
  /// Its time, in nanoseconds of the trace's clock.
  std::int64_t begin = 0, end = 0;
};

/// Returns the path in order of time; its parts follow each other up to the end of the rank that ends last.
/// Cost:       linear in the step's parts and collectives
std::vector<PathPart> critical_path(const StepTimeline& step);

}  // namespace convoy::observe

// From a trace to numbers: what communication cost each step, whom ranks waited for, and which chain of work was critical.
//
// Words: communication is *exposed* while the driver can do nothing but wait for it, and *hidden* while the driver works.
// Exposed time is *waiting* while no byte could move, since some rank had not launched what comes next, and *moving*
// otherwise. All of it is lengths of unions of intervals: what overlaps counts once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "convoy/observe/trace/critical_path.h"
#include "convoy/observe/trace/trace.h"

namespace convoy::observe {

/// A number of a rank in a step.
enum class StepTime : unsigned char {
  kStep,          ///< the whole step
  kInputPrepare,  ///< the loader's thread, beside the driver
  kInputWait,     ///< the driver waits for input
  kForward,
  kBackward,
  kComm,          ///< some collective was launched and not finished
  kHidden,        ///< of that, while the driver worked
  kExposed,       ///< while the driver waited: waiting and moving
  kWaiting,       ///< exposed, and no byte could move
  kMoving,        ///< exposed, and bytes could move
  kGradientNorm,  ///< the norm over all ranks and the checks
  kOptimizer,
  kOther,    ///< the step less the driver's parts
  kOwnWork,  ///< input_wait, forward, backward, optimizer and other
  kTail,     ///< from the end of the rank's backward to the end of its communication
};

/// How many there are.
inline constexpr std::size_t kStepTimes = 15;

/// Returns the number's name, for example "input_wait".
std::string_view to_string(StepTime time);

/// All numbers of one rank in one step, in milliseconds.
struct RankStep {
  /// By number of StepTime.
  std::array<double, kStepTimes> ms{};
  /// Returns one of them.
  double at(StepTime time) const { return ms[static_cast<std::size_t>(time)]; }
};

/// When ranks came to a collective, in milliseconds after the first rank's begin of the step.
struct Arrivals {
  /// The bucket, or kAgreementNumber; its size.
  std::int64_t number = 0, bytes = 0;
  /// By rank: when it was launched and when it was finished.
  std::vector<double> launched_ms, finished_ms;
  /// Who came last.
  int last_rank = 0;
};

/// A part of the critical path, in milliseconds after the first rank's begin of the step.
struct PathStretch {
  int rank = 0;
  /// "forward", "moving", "other" and so on.
  std::string_view part;
  /// Its time.
  double begin_ms = 0.0, end_ms = 0.0;
};

/// One step.
struct StepAnalysis {
  std::int64_t step = 0;
  /// By rank.
  std::vector<RankStep> ranks;
  /// In the order in which they run.
  std::vector<Arrivals> collectives;
  /// In order of time.
  std::vector<PathStretch> path;
  /// From the end of the last rank's backward to the end of communication.
  double tail_ms = 0.0;
  /// How long all ranks together waited for each rank.
  std::vector<double> waited_for_ms;
};

/// What a part of one rank's work has of the critical path over all steps.
struct PathShare {
  int rank = 0;
  /// As in PathStretch.
  std::string_view part;
  /// Its share of the length of all paths, and in how many steps it is on the path.
  double share = 0.0;
  std::int64_t steps = 0;
};

/// A number over many steps.
struct Spread {
  /// Its middle, and what 95 of 100 do not exceed.
  double median = 0.0, p95 = 0.0;
};

/// Who made others wait over all steps.
struct WaitCause {
  /// The rank, or -1 when nobody waited.
  int rank = -1;
  /// What it did longer than the others: "forward", "input_wait" and so on.
  std::string_view part = "";
  /// By how much, in the median step.
  double excess_ms = 0.0;
  /// How long each other rank waited for it in the median step, and its share of all waiting.
  double waited_ms = 0.0, share = 0.0;
};

/// A trace in numbers.
struct TraceAnalysis {
  /// In order.
  std::vector<StepAnalysis> steps;
  /// By rank and by number of StepTime, over steps.
  std::vector<std::array<Spread, kStepTimes>> ranks;
  /// By number of StepTime, over all ranks and steps.
  std::array<Spread, kStepTimes> all{};
  /// Of StepAnalysis::tail_ms.
  Spread tail;
  /// Whom the others waited for most.
  WaitCause cause;
  /// What the critical paths consist of, longest first; the shares add up to 1.
  std::vector<PathShare> path;
};

/// Returns the numbers.
/// Errors:     kCorrupt when ranks do not agree on a step's buckets
TraceAnalysis analyse(const Trace& trace);

}  // namespace convoy::observe

// The step timer: where the time of a training step goes.
//
// Words: *exclusive* parts divide the time of the thread that drives the step, so that they and `other` add up to the
// total. The rest go on beside them: input_prepare and comm on other threads, wait_slowest as a share of comm_exposed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "convoy/base/clock.h"

namespace convoy::observe {

/// A part of a step.
enum class Part : unsigned char {
  kInputPrepare,  ///< making batches, on the loader's threads
  kInputWait,     ///< exclusive: waiting for a batch
  kForward,       ///< exclusive: forward and loss
  kBackward,      ///< exclusive: backward
  kComm,          ///< communication from launch to end, overlapped or not, as a union of intervals
  kCommExposed,   ///< exclusive: waiting for communication, when nothing else was left to do
  kWaitSlowest,   ///< the share of kCommExposed in which no byte could move since a rank had not arrived
  kOptimizer,     ///< exclusive: clipping and update
  kOther,         ///< exclusive: the total less all other exclusive parts
};

/// How many parts there are.
inline constexpr std::size_t kParts = 9;

/// All parts in order.
inline constexpr std::array<Part, kParts> kAllParts = {Part::kInputPrepare, Part::kInputWait, Part::kForward,
                                                       Part::kBackward,     Part::kComm,      Part::kCommExposed,
                                                       Part::kWaitSlowest,  Part::kOptimizer, Part::kOther};

/// Returns the part's name in reports, for example "input_prepare".
std::string_view to_string(Part part);

/// Returns whether the part takes time from the thread that drives the step.
bool is_exclusive(Part part);

/// The times of one step.
struct StepTimes {
  /// The whole step.
  Duration total{};
  /// Each part, by number of Part.
  std::array<Duration, kParts> parts{};
  /// Returns one part.
  Duration part(Part which) const { return parts[static_cast<std::size_t>(which)]; }
};

/// Measures steps.
/// Threads:    spans of exclusive parts, begin_step and end_step from the thread that drives the step; spans of other
///             parts and add from any
class StepTimer {
 public:
  /// Makes a timer whose first step begins now.
  explicit StepTimer(const Clock& clock = system_clock());

  /// Measures a part while it lives. A span of an exclusive part inside another takes its time from the outer one.
  class Span {
   public:
    /// Starts to measure; see StepTimer::measure.
    Span(StepTimer& timer, Part part);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    StepTimer& timer_;
    Part part_;
    TimePoint start_;
    Span* outer_ = nullptr;
    Duration inner_{};
  };

  /// Starts to measure a part.
  /// Ownership:  the span must end before the timer and, when its part is exclusive, inside the span around it
  [[nodiscard]] Span measure(Part part) { return Span(*this, part); }
  /// Adds time to a part. Time added to an exclusive part is not taken from a span around the caller.
  void add(Part part, Duration duration);
  /// Begins a step, forgetting what the driving thread has done since the last one (evaluation, checkpoints).
  void begin_step();
  /// Ends the step, returns its times, and begins the next one.
  /// Errors:     kInternal while a span of an exclusive part is open
  StepTimes end_step();

 private:
  const Clock& clock_;
  TimePoint step_start_;
  Span* open_ = nullptr;
  std::array<std::atomic<std::int64_t>, kParts> parts_ns_{};
};

/// What many steps have in common.
struct StepSummary {
  /// How many steps count.
  std::int64_t steps = 0;
  /// The middle of the totals; 0 without steps.
  double median_ms = 0.0;
  /// The 95th percentile of the totals; 0 without steps.
  double p95_ms = 0.0;
  /// The middle of each part, by number of Part. Medians need not add up.
  std::array<double, kParts> parts_ms{};
};

/// Gathers steps and leaves out the first ones.
class StepStatistics {
 public:
  /// Leaves out the first `warmup` steps.
  explicit StepStatistics(std::int64_t warmup) : warmup_(warmup) {}
  /// Takes a step.
  void add(const StepTimes& times);
  /// Returns how many steps it was given, warm-up among them.
  std::int64_t seen() const { return seen_; }
  /// Returns the statistics of the steps after warm-up.
  StepSummary summary() const;

 private:
  std::int64_t warmup_;
  std::int64_t seen_ = 0;
  std::vector<double> total_ms_;
  std::array<std::vector<double>, kParts> parts_ms_;
};

}  // namespace convoy::observe

// The trace of a run: what every rank did when, as spans on one clock.
//
// Words: a *span* is a stretch of time of one rank with a kind. The *driver* is the thread that runs the step; its spans
// never overlap apart from lying inside their step. *Collectives* are the exchange of each gradient bucket and, after
// them, the *agreement*: what ranks tell each other at the end of a step (losses, counts, finite flags).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::observe {

/// What a span is.
enum class SpanKind : unsigned char {
  kSetup,         ///< everything before the first step
  kStep,          ///< one step of the driver; the spans of its parts lie inside
  kInputPrepare,  ///< the loader's thread works on a step's batches
  kInputWait,     ///< the driver waits for them
  kForward,       ///< one micro-batch of one replica
  kBackward,      ///< the same, backward
  kBucket,        ///< a gradient bucket from ready to finished
  kAgreement,     ///< the agreement, from its launch to its end
  kCommWait,      ///< the driver waits for buckets and agreement
  kGradientNorm,  ///< the norm over all ranks, and the checks on what was exchanged
  kOptimizer,     ///< clipping and update
  kEvaluation,    ///< outside of steps
  kCheckpoint,    ///< outside of steps
};

/// How many kinds there are.
inline constexpr std::size_t kSpanKinds = 13;

/// Returns the kind's name, for example "input_wait".
std::string_view to_string(SpanKind kind);

/// Returns the kind of this name, or nothing.
std::optional<SpanKind> try_span_kind(std::string_view name);

/// One stretch of time. All times in nanoseconds of one clock; -1 stands for "not known".
struct Span {
  /// What it is.
  SpanKind kind = SpanKind::kStep;
  /// The step; -1 outside of steps.
  std::int64_t step = -1;
  /// Bucket: when it was ready. The begin and end of the span.
  std::int64_t begin_ns = 0, end_ns = 0;
  /// Bucket: its number in the step's order. Forward, backward: the replica.
  std::int64_t number = -1;
  /// Forward, backward: the micro-batch.
  std::int64_t micro_batch = -1;
  /// Bucket, agreement: when it was launched, when the driver went on after the launch, and its size (0 where it is not
  /// known).
  std::int64_t launched_ns = -1, returned_ns = -1, bytes = -1;
  /// Step: how many operators forward and backward ran and the processor time of these, where they were counted.
  std::int64_t operators = -1, operator_ns = -1;
  friend bool operator==(const Span&, const Span&) = default;
};

/// What one rank recorded.
struct RankTrace {
  int rank = 0;
  /// The rank's host, by number, and how many processors it may use there.
  int host = 0, processors = 0;
  /// How many logical replicas it carries.
  int replicas = 1;
  /// What was added to its clock to have that of rank 0, and by how much that may be wrong.
  std::int64_t clock_offset_ns = 0, clock_uncertainty_ns = 0;
  /// How many spans found no room.
  std::int64_t dropped = 0;
  std::vector<Span> spans;
  friend bool operator==(const RankTrace&, const RankTrace&) = default;
};

/// What all ranks recorded, on the clock of rank 0.
struct Trace {
  /// The run's name.
  std::string task;
  /// The recipe's bucket size.
  std::int64_t bucket_bytes = 0;
  /// By rank.
  std::vector<RankTrace> ranks;
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Returns a rank's trace as numbers, to be sent to another rank.
std::vector<std::int64_t> to_words(const RankTrace& trace);

/// Returns what to_words was given.
/// Errors:     kCorrupt when the numbers are no trace
RankTrace from_words(std::span<const std::int64_t> words);

/// Adds its own clock offset to all times of a rank.
void shift_to_common_clock(RankTrace& trace);

/// Moves all times so that the earliest is 0.
void start_at_zero(Trace& trace);

}  // namespace convoy::observe

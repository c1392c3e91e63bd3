// Traces of runs that never were, to the microsecond: what every number of an analysis must be is known beforehand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convoy/observe/trace/trace.h"

namespace convoy::testing {

/// What one rank does in each step, in milliseconds.
struct SyntheticRank {
  double input_wait = 0.0, forward = 4.0, backward = 8.0, optimizer = 1.0, other = 0.5;
  int replicas = 1;
};

/// A run of ranks that step together.
struct SyntheticRun {
  std::vector<SyntheticRank> ranks{2};
  int steps = 5;
  /// Each bucket's bytes. Gradients arrive evenly over backward, buckets one after the other.
  std::vector<std::int64_t> buckets{1 << 20, 1 << 20, 1 << 20, 1 << 20};
  /// What a collective costs whatever its size, and for each MiB.
  double fixed_ms = 0.1, ms_per_mib = 0.5;
  /// Launches all buckets after backward; waits for each straight after its launch.
  bool late = false, waits = false;
  std::int64_t bucket_bytes = 1 << 20;
  /// Operators of a step and their mean time; -1 where they are not counted.
  std::int64_t operators = -1;
  double operator_us = 0.0;
};

/// Milliseconds in nanoseconds.
inline std::int64_t to_ns(double ms) { return static_cast<std::int64_t>(ms * 1e6 + 0.5); }

/// Plays one step from `begin` on for all ranks, and returns when it ends.
inline std::int64_t play_step(const SyntheticRun& run, std::int64_t step, std::int64_t begin, observe::Trace& trace) {
  using observe::Span;
  using observe::SpanKind;
  const std::size_t ranks = run.ranks.size();
  const std::size_t buckets = run.buckets.size();
  std::vector<std::int64_t> at(ranks);
  std::vector<std::int64_t> backward_begin(ranks);
  const auto add = [&](std::size_t rank, Span span) {
    span.step = step;
    trace.ranks[rank].spans.push_back(span);
  };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const SyntheticRank& plan = run.ranks[rank];
    at[rank] = begin + to_ns(plan.input_wait);
    add(rank, {.kind = SpanKind::kInputPrepare, .begin_ns = begin, .end_ns = begin + to_ns(plan.input_wait + 0.2)});
    add(rank, {.kind = SpanKind::kInputWait, .begin_ns = begin, .end_ns = at[rank]});
    Span forward{.kind = SpanKind::kForward, .begin_ns = at[rank], .end_ns = at[rank] + to_ns(plan.forward)};
    forward.number = static_cast<std::int64_t>(rank);
    forward.micro_batch = 0;
    add(rank, forward);
    backward_begin[rank] = at[rank] = forward.end_ns;
  }
  // Bucket by bucket, as each may hold up the next.
  std::vector<std::vector<Span>> spans(ranks);
  std::int64_t free = begin;
  for (std::size_t k = 0; k < buckets; ++k) {
    std::int64_t arrival = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t share = to_ns(run.ranks[rank].backward) / static_cast<std::int64_t>(buckets);
      at[rank] += share;
      const std::int64_t end = backward_begin[rank] + share * static_cast<std::int64_t>(buckets);
      Span bucket{.kind = SpanKind::kBucket, .begin_ns = at[rank] - 1000};
      bucket.number = static_cast<std::int64_t>(k);
      bucket.bytes = run.buckets[k];
      bucket.launched_ns = run.late ? end : at[rank] - 1000;
      bucket.returned_ns = bucket.launched_ns + 500;
      arrival = std::max(arrival, bucket.launched_ns);
      spans[rank].push_back(bucket);
    }
    free = std::max(free, arrival) +
           to_ns(run.fixed_ms + run.ms_per_mib * static_cast<double>(run.buckets[k]) / (1 << 20));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      spans[rank][k].end_ns = free;
      if (run.waits) at[rank] = spans[rank][k].returned_ns = free + 1000;
    }
  }
  const std::int64_t arrival = *std::max_element(at.begin(), at.end());
  const std::int64_t done = std::max(free, arrival) + to_ns(run.fixed_ms);
  std::int64_t end = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    add(rank, {.kind = SpanKind::kBackward,
               .begin_ns = backward_begin[rank],
               .end_ns = at[rank],
               .number = static_cast<std::int64_t>(rank),
               .micro_batch = 0});
    for (const Span& bucket : spans[rank]) add(rank, bucket);
    Span agreement{.kind = SpanKind::kAgreement, .begin_ns = at[rank], .end_ns = done};
    agreement.launched_ns = agreement.returned_ns = at[rank];
    agreement.bytes = 96;
    add(rank, agreement);
    add(rank, {.kind = SpanKind::kCommWait, .begin_ns = at[rank], .end_ns = done});
    const std::int64_t updated = done + to_ns(run.ranks[rank].optimizer);
    add(rank, {.kind = SpanKind::kOptimizer, .begin_ns = done, .end_ns = updated});
    const std::int64_t over = updated + to_ns(run.ranks[rank].other);
    Span whole{.kind = SpanKind::kStep, .begin_ns = begin, .end_ns = over};
    whole.operators = run.operators;
    if (run.operators >= 0) whole.operator_ns = to_ns(static_cast<double>(run.operators) * run.operator_us / 1000);
    add(rank, whole);
    end = std::max(end, over);
  }
  return end;
}

/// Returns the run's trace.
inline observe::Trace play(const SyntheticRun& run) {
  observe::Trace trace;
  trace.task = "synthetic";
  trace.bucket_bytes = run.bucket_bytes;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    observe::RankTrace one;
    one.rank = static_cast<int>(rank);
    one.processors = 2;
    one.replicas = run.ranks[rank].replicas;
    trace.ranks.push_back(one);
  }
  std::int64_t now = 0;
  for (int step = 0; step < run.steps; ++step) now = play_step(run, 10 + step, now, trace);
  return trace;
}

}  // namespace convoy::testing

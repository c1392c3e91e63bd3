// The diagnosis: what is wrong with a run, by name, as far as its trace shows it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convoy/observe/trace/trace.h"
#include "convoy/observe/trace/trace_analysis.h"

namespace convoy::observe {

/// From when on something is named. Shares are of the median step. Less: more is named, also by chance.
struct DiagnosisLimits {
  /// Time that could be won by another way of launching or cutting buckets, or by faster input.
  double share_of_step = 0.05;
  /// A slow rank's own work for each replica beyond the other ranks', as a share of theirs.
  double slow_rank = 0.25;
  /// The largest bucket that is not worth cutting, in bytes.
  std::int64_t small_bucket_bytes = 256 << 10;
  /// Operators of a step from which on they are many.
  std::int64_t many_operators = 500;
  /// The mean time of an operator up to which it is tiny, in microseconds.
  double tiny_operator_us = 10.0;
};

/// Something that is wrong.
struct Finding {
  /// "late_launch", "wait_after_launch", "buckets_too_large", "buckets_too_small", "slow_input", "slow_rank" or
  /// "tiny_operations".
  std::string name;
  /// The rank that it is about; -1 for all.
  int rank = -1;
  /// What is seen, and what helps.
  std::string words, advice;
  /// The numbers that it was found by, with their units in their names.
  std::vector<std::pair<std::string, double>> evidence;
};

/// Returns what is wrong, in a fixed order of names; nothing for a run that is well.
/// Errors:     kCorrupt when ranks do not agree on a step's buckets
std::vector<Finding> diagnose(const Trace& trace, const TraceAnalysis& analysis, const DiagnosisLimits& limits = {});

}  // namespace convoy::observe

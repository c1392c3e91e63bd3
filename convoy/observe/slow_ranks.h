// Which ranks are slow by their own work: the convoy's slowest ship, told apart from those that wait for it.
//
// *Own work* is what a rank does in a step without waiting for another: input, forward, backward. A rank that waits for
// a slow one has a long step too; its own work stays short.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

namespace convoy::observe {

/// When a rank is slow.
struct SlowRankOptions {
  /// Its median own work is at least this many times the median of all ranks'. Less: more ranks named, also by chance.
  double ratio = 1.5;
  /// How many of the newest steps are looked at.
  std::size_t window = 1000;
};

/// One rank that is slow.
struct SlowRank {
  /// The rank.
  int rank = 0;
  /// Its median own work in milliseconds, and the median of all ranks' medians (of an even number the lower middle).
  double own_work_ms = 0.0, median_ms = 0.0;
};

/// Collects the own work of all ranks, step by step.
/// Threads:    one
/// Cost:       keeps window numbers for each rank
class SlowRanks {
 public:
  /// Errors:     kInvalidArgument without ranks, without a window or with a ratio that is not above 1
  explicit SlowRanks(int ranks, const SlowRankOptions& options = {});

  /// Adds a step: the own work of each rank in milliseconds, in order of ranks.
  /// Errors:     kInvalidArgument when there is not one number for each rank
  void add_step(std::span<const double> own_work_ms);
  /// Returns each rank's median own work in milliseconds; empty before the first step.
  std::vector<double> medians() const;
  /// Returns the ranks that are slow, the slowest first.
  std::vector<SlowRank> slow() const;
  /// Returns {own_work_ms: [by rank], slow: [{rank, own_work_ms, median_ms}]}.
  nlohmann::ordered_json to_json() const;

 private:
  const SlowRankOptions options_;
  std::size_t steps_ = 0;
  std::vector<std::vector<double>> newest_;
};

}  // namespace convoy::observe

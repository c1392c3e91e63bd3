// Short timed runs that say what the ranks were worth: the same ranks against one rank and against one process.
#pragma once

#include <functional>
#include <string>

#include "apps/cli/run/rank_job.h"
#include "apps/cli/run/summary.h"
#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// What is timed against what.
struct BaselineOptions {
  /// The run directory; timed runs lie in its folder timing/.
  std::string directory;
  /// The ranks of the run.
  int ranks = 1;
  /// Steps of each timed run.
  int steps = 40;
  /// How often each kind is run; kinds take turns, so that a machine's moods meet all of them.
  int rounds = 2;
};

/// What came of it.
struct BaselineOutcome {
  /// The entry `speedup` of summary.json; empty when a timed run failed.
  Json speedup;
  /// The exit status of the timed run that failed; 0 when none did.
  int status = 0;
  /// What is to be said about it.
  std::string message;
};

/// Returns the recipe of a timed run: the same work in each step, nothing outside the steps. `replicas` 0 keeps them.
spec::Recipe timing_recipe(const spec::Recipe& recipe, int steps, int replicas);

/// Runs all timed runs through `run_job` and compares their median step times.
/// Errors:     kCorrupt when a timed run left no median
BaselineOutcome time_baselines(const spec::Recipe& recipe, const BaselineOptions& options,
                               const std::function<elastic::LaunchResult(const RankJob& job)>& run_job);

}  // namespace convoy::cli

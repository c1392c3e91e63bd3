// Probe runs: a few steps of a recipe on all ranks, or on the reference, recorded for `convoy verify` to compare.
#pragma once

#include <cstdint>

#include "convoy/train/run.h"

namespace convoy::train {

/// What a probe run does.
struct ProbeRequest {
  /// How many updates; the short last batch of an epoch comes on top where there is one.
  std::int64_t steps = 5;
  /// Whether this is the reference: one process that works through the replicas of `reference_ranks` ranks in turn.
  bool reference = false;
  /// How many ranks the reference stands for; decides the replicas where the recipe's are off.
  int reference_ranks = 1;
};

/// Trains the steps and writes this rank's part of the probe into the run directory's folder `probe`, and rank 0 the facts
/// of the run (`probe.json`: replicas, accumulation, steps_per_epoch, samples, parameters).
/// Besides the trained steps it records which samples the first steps of the two following epochs would have.
/// Collective: all ranks of the group; the reference alone in a group of one
/// Errors:     as run()
void run_probe(const RunRequest& request, const ProbeRequest& probe, const RunServices& services);

}  // namespace convoy::train

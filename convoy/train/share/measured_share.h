// Measured shares: how fast each rank works through a replica, and the replicas that it is dealt for it.
#pragma once

#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/group.h"
#include "convoy/params/model.h"
#include "convoy/params/random_scope.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::train {

/// What ranks measured, and what they are dealt for it; equal on all of them.
struct MeasuredShares {
  /// The replicas of each rank; empty: evenly.
  std::vector<spec::ReplicaRange> owners;
  /// What one micro-batch took on each rank, forward and backward; empty when nothing was measured.
  std::vector<double> micro_batch_ms;
};

/// Returns how long forward and backward of a batch take on this rank: the median of at least five passes, while all
/// other ranks are busy too. Leaves the model as it was: parameters are not changed, gradients are thrown away, buffers
/// and the default generator are put back.
/// Collective: all ranks of the group
/// Errors:     what the model throws
/// Cost:       two passes to warm up, then at least five and 50 ms of passes, on the slowest rank
Duration time_micro_batch(params::Model& model, const params::Batch& batch, const params::RandomPlace& place,
                          comm::Group& group);

/// Measures all ranks on the same micro-batch and deals the replicas out by it. The model's parameters are where it was
/// built: no strategy has it yet.
/// Collective: all ranks of the group, with equal models and batches
/// Errors:     kInvalidArgument when there are more ranks than replicas; what the model throws
MeasuredShares measure_shares(params::Model& model, const params::Batch& batch, const params::RandomPlace& place,
                              int replicas, comm::Group& group);

}  // namespace convoy::train

// Batch norm over all replicas of a step: the statistics of the whole micro-batch, whoever carries which part of it.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "convoy/params/replica_team.h"

namespace convoy::parallel {

/// How activations are normalised over several replicas.
struct SyncBatchNormOptions {
  /// Channels: the size of dimension 1.
  std::int64_t channels = 1;
  /// Added to the variance.
  double epsilon = 1e-5;
  /// The share of a step's statistics in the running ones.
  double momentum = 0.1;
};

/// Batch norm whose mean and variance are those of all samples that all replicas have in the present micro-batch, each
/// weighted by what it counts; a replica without rows takes part with none, and with no rows at all nothing changes.
/// Parameters and buffers have the names of torch::nn::BatchNorm2d's. Statistics are merged in double along the canonical
/// tree over replicas, so bits do not depend on the number of ranks. Outside of a step in lock-step (one process without
/// replicas) it is ordinary batch norm.
/// Shapes:     [N, C, ...]; returns the same shape
/// Collective: training passes, all replicas that have samples
/// Source:     Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979
class SyncBatchNormImpl final : public torch::nn::Module, public params::AcrossReplicas {
 public:
  /// Makes weights of 1, biases of 0 and the running statistics of a normal distribution.
  explicit SyncBatchNormImpl(const SyncBatchNormOptions& options);
  /// Normalises.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  const SyncBatchNormOptions options_;
  torch::Tensor weight_;
  torch::Tensor bias_;
  torch::Tensor running_mean_;
  torch::Tensor running_var_;
  torch::Tensor num_batches_tracked_;
};

/// Holds a SyncBatchNormImpl, as libtorch's own modules are held.
TORCH_MODULE(SyncBatchNorm);

}  // namespace convoy::parallel

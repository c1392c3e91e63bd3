// The reference: the same training in one process, written as plainly as can be, to hold the ranks against.
//
// It shares no code with parallel/: gradients come from .grad, are added along the canonical tree with tensor sums, and
// buffers are copied in and out for each replica. What it shares is the definition: the tree, the places of random
// numbers, the optimizer's formula.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "convoy/params/flat_space.h"
#include "convoy/params/model.h"
#include "convoy/params/optimizer.h"
#include "convoy/records/loader.h"
#include "convoy/spec/recipe.h"

namespace convoy::train {

/// Trains all replicas in turn on one process.
/// Threads:    one caller at a time
class ReferenceTrainer {
 public:
  /// Called with (replica, micro-batch, slot, gradient sum of that micro-batch alone).
  using PartSink = std::function<void(int, int, std::size_t, const torch::Tensor&)>;

  /// Ownership:  borrows model and recipe while it lives
  ReferenceTrainer(params::Model& model, const spec::Recipe& recipe, int replicas);

  /// Forward and backward of all replicas; `parts`, when there is one, gets every micro-batch's gradient.
  /// Errors:     kFailed when nothing counted
  void gradient(std::int64_t step, records::StepBatch& input, const PartSink& parts);
  /// Clips and updates at a learning rate.
  void update(double rate);

  /// Returns the parameters' places.
  const params::FlatSpace& space() const { return space_; }
  /// Returns the sum of gradients of the last step.
  const torch::Tensor& sums() const { return sums_.flat; }
  /// Returns what counted in the last step.
  double counted() const { return sums_.scale.count; }
  /// Returns a replica's buffers, in the model's order.
  const std::vector<torch::Tensor>& buffers(int replica) const { return buffers_[static_cast<std::size_t>(replica)]; }
  /// Returns all replicas' buffers merged as the recipe says.
  std::vector<torch::Tensor> merged_buffers() const;

 private:
  using Gradients = std::vector<torch::Tensor>;
  Gradients run_replica(std::int64_t step, records::ReplicaBatches& replica, double& counted, const PartSink& parts);
  Gradients collect() const;

  params::Model& model_;
  const spec::Recipe& recipe_;
  params::FlatSpace space_;
  params::Optimizer optimizer_;
  params::GradientSums sums_;
  std::vector<std::vector<torch::Tensor>> buffers_;
};

}  // namespace convoy::train

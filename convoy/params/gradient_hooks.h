// Gradient hooks: take each gradient out of autograd at the moment at which it is complete.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "convoy/params/flat_space.h"
#include "convoy/params/gradient_sink.h"

namespace convoy::params {

/// Watches the gradient accumulators of a flat space's parameters.
/// Threads:    one caller at a time, the one that runs backward
class GradientHooks {
 public:
  /// Ownership:  borrows the flat space while it lives
  explicit GradientHooks(const FlatSpace& space);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Prepares a step: parameters that ask for gradients now get a hook, and old gradients are let go.
  void begin_step();
  /// From now on each finished gradient goes to the sink: called before a replica's last backward.
  void deliver_to(GradientSink& sink);
  /// Gives the sink what earlier micro-batches left but the last one did not touch, and stops delivering.
  void end_replica();
  /// Stops delivering; returns whether gradients were delivered.
  bool stop_delivering();
  /// Exchanges what autograd has gathered so far in all parameters with the given gradients, of which there may be none:
  /// replicas that take turns keep theirs apart.
  void swap_gradients(std::vector<torch::Tensor>& gradients);
  /// Returns whether the parameter asked for gradients when the step began.
  bool active(std::size_t slot) const { return active_[slot]; }

 private:
  struct Shared;

  const FlatSpace& space_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
  std::vector<bool> active_;
};

}  // namespace convoy::params

// GradientSink: where gradients go as backward makes them; strategies never read .grad.
#pragma once

#include <torch/torch.h>

#include <cstddef>

namespace convoy::params {

/// Receives gradients in the order in which backward finishes them.
/// Threads:    called from the thread that runs backward
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Takes the gradient of parameter number `slot` of the flat space, summed over a replica's micro-batches: contiguous, or
  /// sparse where autograd made it so.
  /// Ownership:  the tensor is the sink's alone; its memory stays until the sink lets go of it
  virtual void take(std::size_t slot, torch::Tensor gradient) = 0;
};

}  // namespace convoy::params

// Partial sums: what a rank keeps of its replicas' gradients, summed along the canonical tree as replicas finish.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <vector>

#include "convoy/spec/replica_tree.h"

namespace convoy::parallel {

/// The gradients of one parameter on one rank. Each replica's gradient is pushed in turn; as soon as both children of a
/// node of the canonical tree are there they are added, so that at the end one sum is left for each maximal subtree.
/// Ownership:  owns the tensors; sums are made in place in the left one's memory, where autograd left it
/// Threads:    one caller at a time
class PartialSums {
 public:
  /// Adds the gradient of the rank's next replica; `additions` is how many nodes become complete with it.
  void push(torch::Tensor gradient, int additions);
  /// Returns the sums from left to right.
  const std::vector<torch::Tensor>& sums() const { return sums_; }
  /// Forgets everything.
  void clear() { sums_.clear(); }

 private:
  std::vector<torch::Tensor> sums_;
};

/// Returns for each replica of a rank, in turn, how many nodes of the canonical tree over `leaves` replicas become
/// complete inside the rank when that replica's gradient arrives.
std::vector<int> additions_by_replica(int leaves, spec::ReplicaRange range);

}  // namespace convoy::parallel

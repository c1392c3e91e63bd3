#include "convoy/parallel/data/partial_sums.h"

#include "convoy/base/error.h"

namespace convoy::parallel {

void PartialSums::push(torch::Tensor gradient, int additions) {
  const torch::NoGradGuard no_grad;
  sums_.push_back(std::move(gradient));
  for (int i = 0; i < additions; ++i) {
    CONVOY_CHECK(sums_.size() >= 2, "an addition needs two partial sums");
    const torch::Tensor right = std::move(sums_.back());
    sums_.pop_back();
    sums_.back().add_(right);
  }
}

std::vector<int> additions_by_replica(int leaves, spec::ReplicaRange range) {
  std::vector<int> additions;
  for (const spec::ReplicaRange& subtree : spec::maximal_subtrees(leaves, range)) {
    // A subtree of n leaves has the shape of a tree over n leaves, whose program adds after each push what is complete.
    std::vector<spec::ReplicaRange> single;
    for (int leaf = 0; leaf < subtree.size(); ++leaf) single.push_back({leaf, leaf + 1});
    for (const int step : spec::tree_program(subtree.size(), single)) {
      if (step == spec::kAdd) {
        ++additions.back();
      } else {
        additions.push_back(0);
      }
    }
  }
  return additions;
}

}  // namespace convoy::parallel

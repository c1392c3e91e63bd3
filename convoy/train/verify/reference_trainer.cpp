#include "convoy/train/verify/reference_trainer.h"

#include <bit>
#include <cmath>
#include <functional>

#include "convoy/base/error.h"
#include "convoy/params/random_scope.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/train/trainer.h"

namespace convoy::train {
namespace {

// Sums tensors [begin, end) along the canonical tree: the left child covers the largest power of two below the number.
// An undefined tensor is an empty leaf.
torch::Tensor sum_tree(const std::vector<torch::Tensor>& leaves, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return leaves[begin];
  const std::size_t middle = begin + std::bit_floor(end - begin - 1);
  const torch::Tensor left = sum_tree(leaves, begin, middle);
  const torch::Tensor right = sum_tree(leaves, middle, end);
  if (!left.defined() || !right.defined()) return left.defined() ? left : right;
  return left + right;
}

}  // namespace

ReferenceTrainer::ReferenceTrainer(params::Model& model, const spec::Recipe& recipe, int replicas)
    : model_(model),
      recipe_(recipe),
      space_(model),
      optimizer_(space_, params::OptimizerOptions::from(recipe.train)) {
  if (model.across_replicas()) {
    throw Error(ErrorCode::kNotSupported, "verify has no one-process reference for layers that compute over all replicas "
                                          "(synchronised batch norm): compare digests of runs on several ranks");
  }
  sums_.flat = space_.make_like();
  std::vector<torch::Tensor> initial;
  for (const params::NamedTensor& buffer : model.buffers()) initial.push_back(buffer.tensor.clone());
  for (int replica = 0; replica < replicas; ++replica) {
    buffers_.emplace_back();
    for (const torch::Tensor& buffer : initial) buffers_.back().push_back(buffer.clone());
  }
}

ReferenceTrainer::Gradients ReferenceTrainer::collect() const {
  Gradients gradients;
  for (const params::ParameterSlot& slot : space_.slots()) {
    const torch::Tensor& gradient = slot.tensor.grad();
    gradients.push_back(gradient.defined() ? gradient.clone() : torch::Tensor());
  }
  return gradients;
}

ReferenceTrainer::Gradients ReferenceTrainer::run_replica(std::int64_t step, records::ReplicaBatches& replica,
                                                          double& counted, const PartSink& parts) {
  for (const params::ParameterSlot& slot : space_.slots()) slot.tensor.mutable_grad() = torch::Tensor();
  std::vector<torch::Tensor>& own = buffers_[static_cast<std::size_t>(replica.replica)];
  const std::vector<params::NamedTensor> of_model = model_.buffers();
  {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < own.size(); ++i) of_model[i].tensor.copy_(own[i]);
  }
  std::vector<params::Batch> batches = to_tensors(replica, params::to_scalar_type(space_.dtype()));
  Gradients before(space_.slots().size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!batches[i].input.defined()) continue;
    const params::RandomScope random(
        {static_cast<std::uint64_t>(recipe_.task.seed), step, replica.replica, static_cast<int>(i)});
    const params::Loss loss = model_.forward(batches[i]);
    counted += static_cast<double>(loss.count);
    loss.backward();
    if (!parts) continue;
    const Gradients after = collect();
    for (std::size_t slot = 0; slot < after.size(); ++slot) {
      if (!after[slot].defined()) continue;
      parts(replica.replica, static_cast<int>(i), slot, before[slot].defined() ? after[slot] - before[slot] : after[slot]);
    }
    before = after;
  }
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own.size(); ++i) own[i].copy_(of_model[i].tensor);
  return collect();
}

void ReferenceTrainer::gradient(std::int64_t step, records::StepBatch& input, const PartSink& parts) {
  std::vector<Gradients> replicas;
  std::vector<double> counts;
  for (records::ReplicaBatches& replica : input.replicas) {
    counts.push_back(0.0);
    replicas.push_back(run_replica(step, replica, counts.back(), parts));
  }
  sums_.scale.count = 0.0;
  for (const double count : counts) sums_.scale.count += count;  // whole numbers: any order is exact
  if (sums_.scale.count <= 0) throw Error(ErrorCode::kFailed, "no sample counted in the reference's step");
  const torch::NoGradGuard no_grad;
  sums_.flat.zero_();
  sums_.used.assign(space_.slots().size(), false);
  for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) {
    std::vector<torch::Tensor> leaves;
    for (const Gradients& gradients : replicas) leaves.push_back(gradients[slot]);
    const torch::Tensor sum = sum_tree(leaves, 0, leaves.size());
    if (!sum.defined()) continue;
    sums_.used[slot] = true;
    space_.view(sums_.flat, space_.slots()[slot]).copy_(sum);
  }
}

void ReferenceTrainer::update(double rate) {
  const spec::ElementRange all{0, space_.elements()};
  std::vector<double> blocks(static_cast<std::size_t>((all.end + spec::kBlockElements - 1) / spec::kBlockElements));
  params::block_square_sums(space_, sums_.flat, all, blocks.data());
  sums_.scale.clip = clip_factor(recipe_.train, std::sqrt(spec::tree_sum(blocks)) / sums_.scale.count);
  optimizer_.update(sums_, rate);
}

std::vector<torch::Tensor> ReferenceTrainer::merged_buffers() const {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> merged;
  for (std::size_t i = 0; i < buffers_.front().size(); ++i) {
    const torch::Tensor& first = buffers_.front()[i];
    if (recipe_.replicas.buffer_merge == "first" || !first.is_floating_point()) {
      merged.push_back(first.clone());
      continue;
    }
    std::vector<torch::Tensor> leaves;
    for (const auto& replica : buffers_) leaves.push_back(replica[i]);
    merged.push_back(sum_tree(leaves, 0, leaves.size()) / static_cast<double>(buffers_.size()));
  }
  return merged;
}

}  // namespace convoy::train

#include "convoy/params/model.h"

#include "convoy/params/replica_team.h"

namespace convoy::params {
namespace {

std::vector<NamedTensor> named(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
  std::vector<NamedTensor> list;
  for (const auto& item : tensors) list.push_back({item.key(), item.value()});
  return list;
}

}  // namespace

double Loss::value() const {
  double whole = sum.item<double>();
  for (const torch::Tensor& further : further_sums) whole += further.item<double>();
  return whole;
}

void Loss::backward(const std::function<void()>& before_last) const {
  std::vector<torch::Tensor> sums = {sum};
  sums.insert(sums.end(), further_sums.begin(), further_sums.end());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const bool last = i + 1 == sums.size();
    if (last && before_last) before_last();
    // Graphs of several sums may have parts in common.
    if (sums[i].requires_grad()) sums[i].backward({}, /*retain_graph=*/!last);
  }
}

std::vector<NamedTensor> ModuleModel::parameters() { return named(module_->named_parameters()); }

std::vector<NamedTensor> ModuleModel::buffers() { return named(module_->named_buffers()); }

bool ModuleModel::across_replicas() {
  for (const auto& module : module_->modules()) {
    if (dynamic_cast<const AcrossReplicas*>(module.get()) != nullptr) return true;
  }
  return false;
}

Loss cross_entropy(const torch::Tensor& logits, const torch::Tensor& classes) {
  namespace F = torch::nn::functional;
  Loss loss;
  loss.sum = F::cross_entropy(logits, classes, F::CrossEntropyFuncOptions().reduction(torch::kSum));
  loss.count = classes.size(0);
  loss.output = logits;
  return loss;
}

Loss cross_entropy(const torch::Tensor& logits, const Batch& batch) {
  if (!batch.weight.defined()) return cross_entropy(logits, batch.target);
  namespace F = torch::nn::functional;
  Loss loss;
  const torch::Tensor each =
      F::cross_entropy(logits, batch.target, F::CrossEntropyFuncOptions().reduction(torch::kNone));
  loss.sum = (each * batch.weight).sum();
  loss.count = batch.target.size(0);
  loss.output = logits;
  return loss;
}

}  // namespace convoy::params

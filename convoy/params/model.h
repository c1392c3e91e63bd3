// Model: what a strategy needs to know of a model. Any torch::nn::Module fits, unchanged.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace convoy::params {

/// The input of one forward pass.
struct Batch {
  /// [B, ...] in the model's type.
  torch::Tensor input;
  /// [B] int64 classes, or whatever the loss takes.
  torch::Tensor target;
  /// [B] the weight of each sample's loss, in the model's type; undefined: all 1.
  torch::Tensor weight{};
};

/// What a forward pass found.
struct Loss {
  /// The sum, not the mean, of the loss over what counted: a differentiable scalar.
  torch::Tensor sum;
  /// How many samples (or tokens) counted.
  std::int64_t count = 0;
  /// The model's output, for metrics; may be undefined.
  torch::Tensor output{};
  /// Further sums of the loss, each a differentiable scalar with a backward pass of its own after that of `sum`, in order.
  /// The loss is the sum of all.
  std::vector<torch::Tensor> further_sums{};

  /// Returns the whole loss: the sum of all sums.
  double value() const;
  /// Runs all backward passes; `before_last`, where given, is called before the last of them.
  void backward(const std::function<void()>& before_last = {}) const;
};

/// A tensor under its path in the model, for example "conv1.weight".
struct NamedTensor {
  /// The path.
  std::string name;
  torch::Tensor tensor;
};

/// A trainable function with a loss.
/// Threads:    one caller at a time
class Model {
 public:
  virtual ~Model() = default;
  /// Returns the parameters in canonical order; a tied one may come once under each of its names.
  virtual std::vector<NamedTensor> parameters() = 0;
  /// Returns the buffers in canonical order (running statistics and the like).
  virtual std::vector<NamedTensor> buffers() = 0;
  /// Runs the model on a batch.
  virtual Loss forward(const Batch& batch) = 0;
  /// Switches between training and evaluation.
  virtual void train(bool on) = 0;
  /// Returns whether a pass of one replica needs those of the others (see AcrossReplicas).
  virtual bool across_replicas() { return false; }
};

/// A torch::nn::Module as a Model.
/// Ownership:  shares the module, whose parameters keep their identity: the user's own handles stay valid
class ModuleModel final : public Model {
 public:
  /// Runs the module on a batch and returns the loss.
  using Forward = std::function<Loss(const Batch&)>;
  /// Wraps a module; `forward` captures it in its real type.
  ModuleModel(std::shared_ptr<torch::nn::Module> module, Forward forward)
      : module_(std::move(module)), forward_(std::move(forward)) {}

  std::vector<NamedTensor> parameters() override;
  std::vector<NamedTensor> buffers() override;
  Loss forward(const Batch& batch) override { return forward_(batch); }
  void train(bool on) override { module_->train(on); }
  /// Returns whether any of its modules is AcrossReplicas.
  bool across_replicas() override;

 private:
  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
};

/// Returns the cross entropy of logits against classes, as a sum.
/// Shapes:     logits [B, C], classes [B] int64
Loss cross_entropy(const torch::Tensor& logits, const torch::Tensor& classes);

/// The same against a batch's target, each sample's loss times its weight. What counts stays the number of samples:
/// weights say how much a sample matters, and their mean over the whole training part is 1.
/// Shapes:     logits [B, C]
Loss cross_entropy(const torch::Tensor& logits, const Batch& batch);

/// Makes a classifier of a module with forward(input [B, ...]) -> logits [B, C].
template <typename M>
std::unique_ptr<Model> make_classifier(std::shared_ptr<M> module) {
  return std::make_unique<ModuleModel>(
      module, [module](const Batch& batch) { return cross_entropy(module->forward(batch.input), batch); });
}

/// Makes a model of a module and a function (module, batch) -> Loss.
template <typename M, typename F>
std::unique_ptr<Model> make_model(std::shared_ptr<M> module, F forward) {
  return std::make_unique<ModuleModel>(
      module, [module, forward](const Batch& batch) { return forward(*module, batch); });
}

}  // namespace convoy::params

#include "convoy/params/gradient_hooks.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include <utility>

namespace convoy::params {

// What hooks reach: libtorch owns the hooks and may keep them longer than this object lives.
struct GradientHooks::Shared {
  const FlatSpace* space = nullptr;
  GradientSink* sink = nullptr;

  void deliver(std::size_t slot) {
    torch::Tensor& gradient = space->slots()[slot].tensor.mutable_grad();
    if (sink == nullptr || !gradient.defined()) return;
    torch::Tensor taken = std::move(gradient);
    gradient = torch::Tensor();
    // Autograd keeps the parameter's layout, which is contiguous; a user's hook may not have. Embeddings give sparse ones.
    const bool as_it_is = taken.is_sparse() || taken.is_contiguous();
    sink->take(slot, as_it_is ? std::move(taken) : taken.contiguous());
  }
};

GradientHooks::GradientHooks(const FlatSpace& space)
    : space_(space),
      shared_(std::make_shared<Shared>()),
      accumulators_(space.slots().size()),
      active_(space.slots().size(), false) {
  shared_->space = &space;
}

GradientHooks::~GradientHooks() {
  shared_->sink = nullptr;
  shared_->space = nullptr;
}

void GradientHooks::begin_step() {
  for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) {
    const torch::Tensor& tensor = space_.slots()[slot].tensor;
    active_[slot] = tensor.requires_grad();
    tensor.mutable_grad() = torch::Tensor();
    if (!active_[slot] || accumulators_[slot] != nullptr) continue;
    accumulators_[slot] = torch::autograd::impl::grad_accumulator(tensor);
    const std::weak_ptr<Shared> weak = shared_;
    accumulators_[slot]->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [weak, slot](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          if (const auto shared = weak.lock()) shared->deliver(slot);
          return outputs;
        }));
  }
}

void GradientHooks::deliver_to(GradientSink& sink) { shared_->sink = &sink; }

bool GradientHooks::stop_delivering() { return std::exchange(shared_->sink, nullptr) != nullptr; }

void GradientHooks::swap_gradients(std::vector<torch::Tensor>& gradients) {
  gradients.resize(space_.slots().size());
  for (std::size_t slot = 0; slot < gradients.size(); ++slot) {
    std::swap(space_.slots()[slot].tensor.mutable_grad(), gradients[slot]);
  }
}

void GradientHooks::end_replica() {
  for (std::size_t slot = 0; slot < space_.slots().size(); ++slot) shared_->deliver(slot);
  shared_->sink = nullptr;
}

}  // namespace convoy::params

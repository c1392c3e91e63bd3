#include "convoy/params/optimizer.h"

#include <fmt/format.h>

#include "convoy/base/error.h"
#include "convoy/observe/memory_meter.h"

namespace convoy::params {

OptimizerOptions OptimizerOptions::from(const spec::TrainRecipe& recipe) {
  OptimizerOptions options;
  options.kind = recipe.optimizer;
  options.momentum = recipe.momentum;
  options.dampening = recipe.dampening;
  options.nesterov = recipe.nesterov;
  options.weight_decay = recipe.weight_decay;
  options.beta1 = recipe.beta1;
  options.beta2 = recipe.beta2;
  options.epsilon = recipe.epsilon;
  return options;
}

Optimizer::Optimizer(FlatSpace& space, const OptimizerOptions& options) : space_(space), options_(options) {
  const observe::MemoryScope scope(observe::MemoryCategory::kOptimizer);
  if (options.kind == "sgd") {
    if (options.momentum != 0.0) moments_.emplace_back("momentum", space.make_like());
  } else if (options.kind == "adam" || options.kind == "adamw") {
    moments_.emplace_back("first_moment", space.make_like());
    moments_.emplace_back("second_moment", space.make_like());
  } else {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", options.kind));
  }
  updates_ = torch::zeros({static_cast<std::int64_t>(space.slots().size())}, torch::dtype(torch::kInt64));
  if (!space.memory().shared()) return;
  std::vector<std::byte*> stretches = {static_cast<std::byte*>(space.values().data_ptr())};
  for (const auto& moment : moments_) stretches.push_back(static_cast<std::byte*>(moment.second.data_ptr()));
  division_ = std::make_unique<DividedUpdate>(*space.memory().group(), space.slots().size(),
                                              element_bytes(space.dtype()), std::move(stretches));
}

void Optimizer::update(const GradientSums& sums, double rate) {
  CONVOY_CHECK(sums.used.size() == space_.slots().size(), "one used flag for each parameter");
  if (division_ == nullptr) {
    count_update(sums.used);
    for (std::size_t slot = 0; slot < sums.used.size(); ++slot) {
      const ParameterSlot& whole = space_.slots()[slot];
      if (sums.used[slot]) update_slice({slot, whole.offset, whole.elements}, sums.flat, sums.scale, rate);
    }
    return;
  }
  take_shares(sums);
  const UpdateOrder order{completed_ + 1, sums.scale, rate, sums.used};
  count_update(order.used);
  counted_ = order.number;
  division_->run(order, [&](const UpdateOrder& asked, const FlatSlice& block) {
    update_slice(block, sums.flat, asked.scale, asked.rate);
  });
  ++completed_;
}

bool Optimizer::settle(const GradientSums& sums, std::span<const int> lost, Duration limit) {
  if (division_ == nullptr) throw Error(ErrorCode::kInvalidArgument, "no update is divided: there is nothing to settle");
  take_shares(sums);
  bool completed = false;
  const auto count_once = [this](const UpdateOrder& order) {
    if (counted_ < order.number) count_update(order.used);
    counted_ = order.number;
  };
  while (const auto order = division_->settle(
             completed_ + 1, lost,
             [&](const UpdateOrder& asked, const FlatSlice& block) {
               count_once(asked);
               update_slice(block, sums.flat, asked.scale, asked.rate);
             },
             limit)) {
    count_once(*order);  // other survivors may have done all that was left
    completed_ = order->number;
    completed = true;
  }
  return completed;
}

void Optimizer::take_shares(const GradientSums& sums) {
  if (sums.shares == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, "ranks share the parameters, and the gradient does not say who updates what");
  }
  if (sums.shares == shares_) return;
  division_->set_shares(*sums.shares);
  shares_ = sums.shares;
}

void Optimizer::count_update(const std::vector<bool>& used) {
  auto* updates = updates_.data_ptr<std::int64_t>();
  for (std::size_t slot = 0; slot < used.size(); ++slot) updates[slot] += used[slot] ? 1 : 0;
}

void Optimizer::update_slice(const FlatSlice& slice, const torch::Tensor& sums, const GradientScale& scale,
                             double rate) {
  if (space_.dtype() == DType::kFloat32) {
    update_slice<float>(slice, sums.data_ptr<float>(), scale, rate);
  } else {
    update_slice<double>(slice, sums.data_ptr<double>(), scale, rate);
  }
}

template <typename T>
void Optimizer::update_slice(const FlatSlice& slice, const T* sums, const GradientScale& scale, double rate) {
  const std::int64_t at = slice.begin;
  const auto moment = [&](std::size_t i) {
    return i < moments_.size() ? moments_[i].second.data_ptr<T>() + at : nullptr;
  };
  T* const values = space_.values().data_ptr<T>() + at;
  const std::int64_t number = updates_.data_ptr<std::int64_t>()[slice.slot];
  if (options_.kind == "sgd") {
    const SgdCoefficients c{rate,           options_.momentum, options_.dampening, options_.weight_decay,
                            options_.nesterov, number == 1};
    sgd_update<T>(values, sums + at, moment(0), slice.count, scale, c);
  } else {
    const AdamCoefficients c{rate,           options_.beta1, options_.beta2,
                             options_.epsilon, options_.weight_decay, options_.kind == "adamw", number};
    adam_update<T>(values, sums + at, moment(0), moment(1), slice.count, scale, c);
  }
}

std::vector<spec::StateEntry> Optimizer::state() {
  std::vector<spec::StateEntry> entries;
  for (const auto& moment : moments_) {
    for (const ParameterSlot& slot : space_.slots()) {
      const torch::Tensor part = space_.view(moment.second, slot);
      entries.push_back({fmt::format("optimizer/{}/{}", moment.first, slot.name), slot.shape, space_.dtype(),
                         spec::Placement::kReplicated, 0, slot.elements, owner_,
                         static_cast<std::byte*>(part.data_ptr())});
    }
  }
  entries.push_back({"optimizer/updates", updates_.sizes().vec(), DType::kInt64, spec::Placement::kReplicated, 0,
                     updates_.numel(), owner_, static_cast<std::byte*>(updates_.data_ptr())});
  return entries;
}

void block_square_sums(const FlatSpace& space, const torch::Tensor& flat, spec::ElementRange range, double* sums) {
  if (space.dtype() == DType::kFloat32) {
    block_square_sums(flat.data_ptr<float>() + range.begin, range.size(), sums);
  } else {
    block_square_sums(flat.data_ptr<double>() + range.begin, range.size(), sums);
  }
}

}  // namespace convoy::params

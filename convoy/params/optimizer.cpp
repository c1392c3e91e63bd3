#include "convoy/params/optimizer.h"

#include <fmt/format.h>

#include "convoy/base/error.h"

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
  if (options.kind == "sgd") {
    if (options.momentum != 0.0) moments_.emplace_back("momentum", space.make_like());
  } else if (options.kind == "adam" || options.kind == "adamw") {
    moments_.emplace_back("first_moment", space.make_like());
    moments_.emplace_back("second_moment", space.make_like());
  } else {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", options.kind));
  }
  updates_ = torch::zeros({static_cast<std::int64_t>(space.slots().size())}, torch::dtype(torch::kInt64));
}

void Optimizer::update(const GradientSums& sums, double rate) {
  CONVOY_CHECK(sums.used.size() == space_.slots().size(), "one used flag for each parameter");
  if (space_.dtype() == DType::kFloat32) {
    update_slots<float>(sums, rate);
  } else {
    update_slots<double>(sums, rate);
  }
}

template <typename T>
void Optimizer::update_slots(const GradientSums& sums, double rate) {
  T* values = space_.values().data_ptr<T>();
  const T* gradient = sums.flat.data_ptr<T>();
  const auto moment = [&](std::size_t i) { return i < moments_.size() ? moments_[i].second.data_ptr<T>() : nullptr; };
  T* const first = moment(0);
  T* const second = moment(1);
  auto* updates = updates_.data_ptr<std::int64_t>();
  const bool sgd = options_.kind == "sgd";
  for (std::size_t i = 0; i < space_.slots().size(); ++i) {
    if (!sums.used[i]) continue;
    const ParameterSlot& slot = space_.slots()[i];
    const std::int64_t at = slot.offset;
    const std::int64_t number = ++updates[i];
    if (sgd) {
      const SgdCoefficients c{rate,           options_.momentum, options_.dampening, options_.weight_decay,
                              options_.nesterov, number == 1};
      sgd_update<T>(values + at, gradient + at, first == nullptr ? nullptr : first + at, slot.elements, sums.scale, c);
    } else {
      const AdamCoefficients c{rate,           options_.beta1, options_.beta2,
                               options_.epsilon, options_.weight_decay, options_.kind == "adamw", number};
      adam_update<T>(values + at, gradient + at, first + at, second + at, slot.elements, sums.scale, c);
    }
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

std::int64_t Optimizer::state_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& moment : moments_) bytes += static_cast<std::int64_t>(moment.second.nbytes());
  return bytes;
}

void block_square_sums(const FlatSpace& space, const torch::Tensor& flat, spec::ElementRange range, double* sums) {
  if (space.dtype() == DType::kFloat32) {
    block_square_sums(flat.data_ptr<float>() + range.begin, range.size(), sums);
  } else {
    block_square_sums(flat.data_ptr<double>() + range.begin, range.size(), sums);
  }
}

}  // namespace convoy::params

#include "convoy/train/profile/operator_cost.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

namespace convoy::train {
namespace {

// They give another look at the same memory.
constexpr std::array<std::string_view, 16> kViews = {
    "view",   "reshape", "flatten", "t",      "transpose", "permute", "squeeze", "unsqueeze",
    "narrow", "select",  "slice",   "expand", "unflatten", "detach",  "chunk",   "split"};

// One operation an element that comes out.
constexpr std::array<std::string_view, 23> kElementwise = {
    "bernoulli", "relu",    "relu_", "add", "add_",       "sub", "mul",  "mul_", "div",   "div_",      "neg",    "abs",
    "tanh",      "sigmoid", "exp",   "log", "leaky_relu", "elu", "sqrt", "pow",  "clamp", "threshold", "dropout"};

// They move or make data without arithmetic.
constexpr std::array<std::string_view, 12> kMoves = {"embedding", "cat",          "clone",      "contiguous",
                                                     "full_like", "ones_like",    "zeros_like", "zeros",
                                                     "copy_",     "index_select", "to",         "stack"};

struct PerElement {
  std::string_view name;
  double flop;
};

// Operations an element that goes in: mean, variance, and the result from them.
constexpr std::array<PerElement, 12> kReducing = {{{"batch_norm", 8},
                                                   {"layer_norm", 8},
                                                   {"group_norm", 8},
                                                   {"softmax", 5},
                                                   {"log_softmax", 5},
                                                   {"cross_entropy_loss", 6},
                                                   {"nll_loss", 1},
                                                   {"sum", 1},
                                                   {"mean", 1},
                                                   {"gelu", 8},
                                                   {"silu", 5},
                                                   {"mse_loss", 3}}};

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::int64_t product(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
}

bool wants(const OperatorCall& call, std::size_t input) {
  return input < call.inputs.size() && call.inputs[input].wants_gradient;
}

// The inner size of a product: how many pairs make up one element that comes out.
std::optional<double> inner_size(const OperatorCall& call) {
  const std::string_view name = call.name;
  const auto& in = call.inputs;
  if (call.outputs.empty() || in.size() < 2) return std::nullopt;
  if (name.starts_with("conv_transpose")) {
    return static_cast<double>(in[0].elements()) /
           static_cast<double>(std::max<std::int64_t>(call.outputs[0].elements(), 1)) *
           (static_cast<double>(in[1].elements()) / static_cast<double>(in[1].shape[0]));
  }
  if (name.starts_with("conv") || name == "_convolution") {
    return static_cast<double>(in[1].elements()) / static_cast<double>(std::max<std::int64_t>(in[1].shape[0], 1));
  }
  if ((name == "linear" || name == "mm" || name == "bmm" || name == "matmul") && !in[0].shape.empty()) {
    return static_cast<double>(in[0].shape.back());
  }
  if ((name == "addmm" || name == "baddbmm") && in.size() > 2 && !in[1].shape.empty()) {
    return static_cast<double>(in[1].shape.back());
  }
  return std::nullopt;
}

OperatorCost product_cost(const OperatorCall& call, double inner) {
  const bool added_first = call.name == "addmm" || call.name == "baddbmm";
  const std::size_t left = added_first ? 1 : 0;
  const std::size_t added = added_first ? 0 : 2;
  const bool has_added = added < call.inputs.size();
  const auto out = static_cast<double>(call.outputs[0].elements());
  const double flop = 2.0 * out * inner;
  const double bytes =
      static_cast<double>(call.inputs[left].bytes() + call.inputs[left + 1].bytes() + call.outputs[0].bytes());
  OperatorCost cost;
  cost.forward_flop = flop + (has_added ? out : 0.0);
  cost.forward_bytes = bytes + (has_added ? static_cast<double>(call.inputs[added].bytes()) : 0.0);
  for (const std::size_t input : {left, left + 1}) {
    if (!wants(call, input)) continue;
    cost.backward_flop += flop;
    cost.backward_bytes += bytes;
  }
  if (has_added && wants(call, added)) {
    cost.backward_flop += out;
    cost.backward_bytes += static_cast<double>(call.outputs[0].bytes() + call.inputs[added].bytes());
  }
  return cost;
}

// The arithmetic of operators that are no products.
std::optional<double> simple_flop(const OperatorCall& call) {
  const double out = call.outputs.empty() ? 0.0 : static_cast<double>(call.outputs[0].elements());
  const double in = call.inputs.empty() ? 0.0 : static_cast<double>(call.inputs[0].elements());
  if (contains(kElementwise, call.name)) return out;
  for (const PerElement& reducing : kReducing) {
    if (reducing.name == call.name) return reducing.flop * in;
  }
  if (call.name.starts_with("max_pool") || call.name.starts_with("avg_pool")) {
    return out * static_cast<double>(product(call.numbers));
  }
  if (call.name.starts_with("adaptive_")) return in;
  if (contains(kMoves, call.name)) return 0.0;
  return std::nullopt;
}

}  // namespace

std::int64_t TensorFacts::elements() const { return product(shape); }

OperatorCost& OperatorCost::operator+=(const OperatorCost& other) {
  forward_flop += other.forward_flop;
  backward_flop += other.backward_flop;
  forward_bytes += other.forward_bytes;
  backward_bytes += other.backward_bytes;
  known = known && other.known;
  return *this;
}

OperatorCost operator_cost(const OperatorCall& call) {
  OperatorCost cost;
  if (contains(kViews, call.name)) return cost;
  if (const auto inner = inner_size(call)) return product_cost(call, *inner);
  const auto flop = simple_flop(call);
  cost.known = flop.has_value();
  cost.forward_flop = flop.value_or(0.0);
  for (const TensorFacts& tensor : call.inputs) cost.forward_bytes += static_cast<double>(tensor.bytes());
  for (const TensorFacts& tensor : call.outputs) cost.forward_bytes += static_cast<double>(tensor.bytes());
  const bool differentiated = std::any_of(call.inputs.begin(), call.inputs.end(),
                                          [](const TensorFacts& tensor) { return tensor.wants_gradient; });
  if (!differentiated) return cost;
  cost.backward_flop = cost.forward_flop;
  cost.backward_bytes = cost.forward_bytes;
  return cost;
}

}  // namespace convoy::train

#include "convoy/law/memory.h"

#include <algorithm>

namespace convoy::law {

int optimizer_moments(std::string_view optimizer, double momentum) {
  if (optimizer == "sgd") return momentum != 0.0 ? 1 : 0;
  if (optimizer == "adam" || optimizer == "adamw") return 2;
  return -1;
}

std::int64_t stretch_elements(std::span<const std::int64_t> parameters) {
  std::int64_t elements = 0;
  for (const std::int64_t count : parameters) {
    elements += (count + kStretchAlignment - 1) / kStretchAlignment * kStretchAlignment;
  }
  return elements;
}

std::int64_t partial_elements(std::span<const std::int64_t> parameters, std::span<const int> additions) {
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const int added : additions) {
    for (const std::int64_t count : parameters) {
      alive += count;
      most = std::max(most, alive);
      alive -= count * added;
    }
  }
  return most;
}

StateBytes state_bytes(const StateShape& shape) {
  const std::int64_t stretch = stretch_elements(shape.parameters) * shape.element_bytes;
  const std::int64_t share = stretch / shape.sharers;
  StateBytes bytes;
  bytes.parameters = share;
  bytes.gradients = share;
  bytes.gradient_partials = partial_elements(shape.parameters, shape.additions) * shape.element_bytes;
  bytes.optimizer = share * shape.moments + 8 * static_cast<std::int64_t>(shape.parameters.size());
  return bytes;
}

}  // namespace convoy::law

// Memory in closed form: what parameters, gradients and optimizer state take on one rank, before anything is run.
//
// Stretches: values, sums and moments each are one stretch in which every parameter starts on a multiple of 16 elements.
// Partial gradients are autograd's own tensors, one for each parameter, without such padding.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace convoy::law {

/// Elements between the starts of parameters in a stretch are a multiple of this.
inline constexpr std::int64_t kStretchAlignment = 16;

/// What training state depends on.
struct StateShape {
  /// The elements of each parameter, in the order in which gradients arrive (from the last layer to the first).
  std::vector<std::int64_t> parameters;
  /// Bytes of one element.
  std::int64_t element_bytes = 4;
  /// Moments of the optimizer for each element; see optimizer_moments.
  int moments = 0;
  /// For each replica of the rank, in turn, how many sums of the canonical tree become complete with its gradient: {0}
  /// for one replica, {0, 1} for two.
  std::vector<int> additions = {0};
  /// Ranks of a host that have values, sums and moments once, together (divided update); 1 where each has its own.
  int sharers = 1;
};

/// What training state takes on one rank, in bytes. What ranks have together counts in equal shares.
struct StateBytes {
  /// The values.
  std::int64_t parameters = 0;
  /// The summed gradient.
  std::int64_t gradients = 0;
  /// The most that autograd's gradients and partial sums take at once: at most 2 log2(replicas) + 1 whole gradients
  /// (log2 of the rank's replicas + 1 in an aligned split), and one parameter's on top.
  std::int64_t gradient_partials = 0;
  /// The moments, and a count of updates (8 bytes) for each parameter.
  std::int64_t optimizer = 0;
  /// Returns all of it together.
  std::int64_t total() const { return parameters + gradients + gradient_partials + optimizer; }
};

/// Returns how many moments an optimizer keeps for each element: "sgd" none, or one with momentum; "adam" and "adamw" two.
/// -1 for an unknown one.
int optimizer_moments(std::string_view optimizer, double momentum);

/// Returns the elements of a stretch.
std::int64_t stretch_elements(std::span<const std::int64_t> parameters);

/// Returns the most elements of gradients and partial sums that are alive at once in a step: each replica's gradients
/// arrive parameter by parameter, and each is added at once into the sums that it completes.
std::int64_t partial_elements(std::span<const std::int64_t> parameters, std::span<const int> additions);

/// Returns the bytes of training state.
StateBytes state_bytes(const StateShape& shape);

}  // namespace convoy::law

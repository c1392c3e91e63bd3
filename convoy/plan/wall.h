// The first question of every plan: what stands in the way of training this model here, and which strategies answer it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::plan {

/// What limits training.
enum class Wall : unsigned char {
  kLayer,        ///< one layer alone does not fit a device
  kState,        ///< copies of parameters, gradients and optimizer state do not fit, or are most of the memory
  kActivations,  ///< a step does not fit for what forward keeps for backward
  kInput,        ///< steps wait for their input
  kTime,         ///< all fits and input is there: computing takes the time
};

/// Returns the wall's name, for example "one_layer_too_large".
std::string_view to_string(Wall wall);

/// What was measured on one process.
struct WallFacts {
  /// Memory of one device.
  double memory_limit_bytes = 0.0;
  /// What is taken there whatever the model: programs, datasets.
  double taken_bytes = 0.0;
  /// Parameters.
  double parameter_bytes = 0.0;
  /// Summed gradients, and partial sums beyond one set of gradients, which a pass holds itself.
  double gradient_bytes = 0.0;
  /// Optimizer state.
  double optimizer_bytes = 0.0;
  /// What one forward and backward pass takes for a local batch of one sample, and for each further one.
  double pass_base_bytes = 0.0;
  double bytes_per_sample = 0.0;
  /// Samples in one forward pass.
  std::int64_t local_batch = 1;
  /// The layer whose parameters, gradients, optimizer state and output (of one sample) take most.
  std::string largest_layer;
  /// What they take.
  double largest_layer_bytes = 0.0;
  /// The median step.
  double step_ms = 0.0;
  /// Of it, waiting for input.
  double input_wait_ms = 0.0;
  /// Of it, the update.
  double optimizer_ms = 0.0;
  /// Estimated time of the whole run, in seconds.
  double total_s = 0.0;
};

/// A strategy that addresses a wall.
struct WallAnswer {
  /// Its name: "data", "divided_update", "sharded", "tensor", "pipeline", "smaller_batch", "more_prefetch".
  std::string strategy;
  /// What it does about the wall.
  std::string why;
};

/// One wall with its answers, the most fitting first.
struct WallFinding {
  Wall wall = Wall::kTime;
  /// One sentence with the numbers.
  std::string words;
  /// What may be done.
  std::vector<WallAnswer> answers;
};

/// State from this share of the memory on is a wall although it fits: little is left for anything else.
inline constexpr double kStateShare = 0.5;
/// Steps that wait at least this share of their time for input.
inline constexpr double kInputShare = 0.1;
/// An update that takes at least this share of the step is worth dividing.
inline constexpr double kUpdateShare = 0.15;

/// Returns the walls, the one that stands first in front; never none, since kTime is always there at the end.
std::vector<WallFinding> find_walls(const WallFacts& facts);

}  // namespace convoy::plan

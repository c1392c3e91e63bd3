// The learning rate as a pure function of how far the run is, never of how many ranks it has.
#pragma once

#include <cstdint>

#include "convoy/spec/recipe.h"

namespace convoy::spec {

/// How far a run is, and how far it will go, in both units that a schedule may count.
struct RunPosition {
  /// Optimizer steps done, and samples that they held.
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Samples of the step about to be taken.
  std::int64_t step_samples = 0;
  /// The whole run.
  std::int64_t total_steps = 0;
  /// Samples of the whole run.
  std::int64_t total_samples = 0;
};

/// Returns the learning rate of the next step. Warm-up rises linearly and reaches the full rate with its last step;
/// after it "linear" and "cosine" fall to final_fraction at the end of the run, "step" multiplies by schedule_factor
/// each schedule_every.
double learning_rate(const TrainRecipe& recipe, const RunPosition& position);

}  // namespace convoy::spec

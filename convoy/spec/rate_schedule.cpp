#include "convoy/spec/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace convoy::spec {

double learning_rate(const TrainRecipe& recipe, const RunPosition& position) {
  const bool by_samples = recipe.schedule_unit == "samples";
  const auto done = static_cast<double>(by_samples ? position.samples : position.steps);
  const auto next = static_cast<double>(by_samples ? position.step_samples : 1);
  const auto total = static_cast<double>(by_samples ? position.total_samples : position.total_steps);
  const auto warmup = static_cast<double>(recipe.warmup);
  if (done < warmup) return recipe.learning_rate * std::min(1.0, (done + next) / warmup);

  const double length = total - warmup;
  const double fraction = length > 0 ? std::clamp((done - warmup) / length, 0.0, 1.0) : 0.0;
  const double final_fraction = recipe.final_fraction;
  if (recipe.schedule == "linear") return recipe.learning_rate * (1.0 - (1.0 - final_fraction) * fraction);
  if (recipe.schedule == "cosine") {
    const double fall = 0.5 * (1.0 + std::cos(std::numbers::pi * fraction));
    return recipe.learning_rate * (final_fraction + (1.0 - final_fraction) * fall);
  }
  if (recipe.schedule == "step" && recipe.schedule_every > 0) {
    const double falls = std::floor((done - warmup) / static_cast<double>(recipe.schedule_every));
    return recipe.learning_rate * std::pow(recipe.schedule_factor, falls);
  }
  return recipe.learning_rate;
}

}  // namespace convoy::spec

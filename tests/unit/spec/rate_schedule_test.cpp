// The learning rate: known values, continuity after a restart, and independence of ranks.
#include "convoy/spec/rate_schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace convoy::spec {
namespace {

TrainRecipe recipe_of(const std::string& schedule) {
  TrainRecipe recipe;
  recipe.schedule = schedule;
  recipe.learning_rate = 1.0;
  return recipe;
}

double rate_at(const TrainRecipe& recipe, std::int64_t step, std::int64_t total = 10, std::int64_t batch = 32) {
  return learning_rate(recipe, {step, step * batch, batch, total, total * batch});
}

TEST(RateSchedule, LinearGoesOnWhereItStoppedAfterARestart) {
  const TrainRecipe recipe = recipe_of("linear");
  // Saved after 4 of 10 steps: neither counted twice (0.2) nor one step late (0.7).
  EXPECT_DOUBLE_EQ(rate_at(recipe, 4), 0.6);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 5), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 0), 1.0);
}

TEST(RateSchedule, CosineFallsToTheFinalFraction) {
  TrainRecipe recipe = recipe_of("cosine");
  recipe.final_fraction = 0.1;
  EXPECT_DOUBLE_EQ(rate_at(recipe, 0), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 5), 0.55);
  EXPECT_NEAR(rate_at(recipe, 10), 0.1, 1e-15);
  EXPECT_NEAR(rate_at(recipe, 12), 0.1, 1e-15) << "past the end it stays";
}

TEST(RateSchedule, StepFallsEachTimeSoMuchIsDone) {
  TrainRecipe recipe = recipe_of("step");
  recipe.schedule_every = 3;
  recipe.schedule_factor = 0.5;
  const std::vector<double> expected{1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_DOUBLE_EQ(rate_at(recipe, static_cast<std::int64_t>(step)), expected[step]) << "step " << step;
  }
}

TEST(RateSchedule, WarmUpReachesTheFullRateWithItsLastStep) {
  for (const char* schedule : {"constant", "linear", "cosine"}) {
    TrainRecipe recipe = recipe_of(schedule);
    recipe.warmup = 4;
    EXPECT_DOUBLE_EQ(rate_at(recipe, 0), 0.25);
    EXPECT_DOUBLE_EQ(rate_at(recipe, 3), 1.0);
    EXPECT_DOUBLE_EQ(rate_at(recipe, 4), 1.0) << schedule;
  }
}

TEST(RateSchedule, CountsSamplesWhenToldTo) {
  TrainRecipe recipe = recipe_of("linear");
  recipe.schedule_unit = "samples";
  recipe.warmup = 64;
  EXPECT_DOUBLE_EQ(rate_at(recipe, 0), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 1), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 2), 1.0);
  EXPECT_DOUBLE_EQ(rate_at(recipe, 6), 0.5) << "half of what is left after warm-up";
  // A short batch counts for what it holds.
  EXPECT_DOUBLE_EQ(learning_rate(recipe, {0, 0, 16, 10, 320}), 0.25);
}

}  // namespace
}  // namespace convoy::spec

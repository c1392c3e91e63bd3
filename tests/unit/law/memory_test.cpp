// Closed forms of training state against sums by hand.
#include "convoy/law/memory.h"

#include <gtest/gtest.h>

namespace convoy::law {
namespace {

TEST(StateBytes, OfOneReplicaIsPaddedStretchesAndOneUnpaddedGradient) {
  StateShape shape;
  shape.parameters = {10, 1000, 16, 0, 17};  // 16 + 1008 + 16 + 0 + 32 elements with padding
  EXPECT_EQ(stretch_elements(shape.parameters), 1072);
  const StateBytes sgd = state_bytes(shape);
  EXPECT_EQ(sgd.parameters, 4 * 1072);
  EXPECT_EQ(sgd.gradients, 4 * 1072);
  EXPECT_EQ(sgd.gradient_partials, 4 * 1043);
  EXPECT_EQ(sgd.optimizer, 5 * 8) << "only the counts of updates";
  shape.moments = optimizer_moments("adam", 0.0);
  shape.element_bytes = 8;
  const StateBytes adam = state_bytes(shape);
  EXPECT_EQ(adam.parameters, 8 * 1072);
  EXPECT_EQ(adam.optimizer, 2 * 8 * 1072 + 5 * 8);
  EXPECT_EQ(adam.total(), adam.parameters + adam.gradients + adam.gradient_partials + adam.optimizer);
}

TEST(StateBytes, OfADividedUpdateAreAShareOfTheStretches) {
  StateShape shape;
  shape.parameters = {30, 50};  // 32 + 64 elements
  shape.moments = optimizer_moments("sgd", 0.9);
  shape.sharers = 3;
  const StateBytes bytes = state_bytes(shape);
  EXPECT_EQ(bytes.parameters, 384 / 3);
  EXPECT_EQ(bytes.gradients, 384 / 3);
  EXPECT_EQ(bytes.optimizer, 384 / 3 + 16);
  EXPECT_EQ(bytes.gradient_partials, 4 * 80) << "each rank's own";
}

TEST(OptimizerMoments, KnowsEachOptimizer) {
  EXPECT_EQ(optimizer_moments("sgd", 0.0), 0);
  EXPECT_EQ(optimizer_moments("sgd", 0.9), 1);
  EXPECT_EQ(optimizer_moments("adam", 0.9), 2);
  EXPECT_EQ(optimizer_moments("adamw", 0.0), 2);
  EXPECT_EQ(optimizer_moments("lion", 0.0), -1);
}

TEST(PartialElements, GrowWithTheDepthOfTheTreeAndFallAsSumsComplete) {
  const std::vector<std::int64_t> sizes{5, 100, 7};
  EXPECT_EQ(partial_elements(sizes, std::vector<int>{0}), 112);
  // The second replica's gradients are added one by one: the largest is there beside the first whole set.
  EXPECT_EQ(partial_elements(sizes, std::vector<int>{0, 1}), 112 + 100);
  // Four replicas: two whole sets, then the third's, and the fourth's first gradient.
  EXPECT_EQ(partial_elements(sizes, std::vector<int>{0, 1, 0, 2}), 2 * 112 + 95);
  // Three replicas whose third is left alone.
  EXPECT_EQ(partial_elements(sizes, std::vector<int>{0, 1, 0}), 2 * 112);
}

}  // namespace
}  // namespace convoy::law

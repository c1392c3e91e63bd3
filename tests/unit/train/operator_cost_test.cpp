// Arithmetic and bytes of operators against products worked out by hand.
#include "convoy/train/profile/operator_cost.h"

#include <gtest/gtest.h>

namespace convoy::train {
namespace {

TensorFacts tensor(std::vector<std::int64_t> shape, bool wants_gradient = false) {
  return {std::move(shape), 4, wants_gradient};
}

TEST(OperatorCost, OfAConvolutionIsOneProductAPixelAndOneMoreForEachGradient) {
  // 5 images of 3 x 8 x 9 to 7 channels by a 3 x 2 window.
  OperatorCall call{"conv2d",
                    {tensor({5, 3, 8, 9}), tensor({7, 3, 3, 2}, true), tensor({7}, true)},
                    {tensor({5, 7, 6, 8}, true)},
                    {}};
  const double out = 5.0 * 7 * 6 * 8;
  const OperatorCost first = operator_cost(call);
  EXPECT_TRUE(first.known);
  EXPECT_EQ(first.forward_flop, 2 * out * 3 * 3 * 2 + out);
  EXPECT_EQ(first.backward_flop, 2 * out * 3 * 3 * 2 + out) << "images want no gradient";
  EXPECT_EQ(first.forward_bytes, 4.0 * (5 * 3 * 8 * 9 + 7 * 3 * 3 * 2 + 7 + out));
  call.inputs[0].wants_gradient = true;
  EXPECT_EQ(operator_cost(call).backward_flop, 2 * 2 * out * 3 * 3 * 2 + out);
}

TEST(OperatorCost, OfAConvolutionInGroupsIsThatOfItsSmallerWindows) {
  const OperatorCall call{"conv2d", {tensor({2, 8, 5, 5}), tensor({8, 1, 3, 3}, true)}, {tensor({2, 8, 5, 5})}, {}};
  EXPECT_EQ(operator_cost(call).forward_flop, 2.0 * 2 * 8 * 25 * 9);
}

TEST(OperatorCost, OfATransposedConvolutionIsOneProductAPixelThatGoesIn) {
  const OperatorCall call{
      "conv_transpose2d", {tensor({2, 6, 4, 4}), tensor({6, 5, 3, 3}, true)}, {tensor({2, 5, 9, 9})}, {}};
  EXPECT_DOUBLE_EQ(operator_cost(call).forward_flop, 2.0 * 2 * 6 * 16 * 5 * 9);
}

TEST(OperatorCost, OfProductsIsTwiceTheThreeSizes) {
  const OperatorCall linear{"linear", {tensor({4, 6, 10}, true), tensor({20, 10}, true)}, {tensor({4, 6, 20})}, {}};
  EXPECT_EQ(operator_cost(linear).forward_flop, 2.0 * 24 * 10 * 20);
  EXPECT_EQ(operator_cost(linear).backward_flop, 2.0 * 2 * 24 * 10 * 20);
  const OperatorCall addmm{"addmm", {tensor({20}), tensor({4, 10}), tensor({10, 20})}, {tensor({4, 20})}, {}};
  EXPECT_EQ(operator_cost(addmm).forward_flop, 2.0 * 4 * 10 * 20 + 80);
  EXPECT_EQ(operator_cost(addmm).backward_flop, 0.0) << "nothing wants a gradient";
  const OperatorCall bmm{"bmm", {tensor({3, 4, 5}), tensor({3, 5, 6})}, {tensor({3, 4, 6})}, {}};
  EXPECT_EQ(operator_cost(bmm).forward_flop, 2.0 * 3 * 4 * 5 * 6);
}

TEST(OperatorCost, OfElementsWindowsAndViews) {
  const OperatorCall relu{"relu", {tensor({10, 7}, true)}, {tensor({10, 7})}, {}};
  EXPECT_EQ(operator_cost(relu).forward_flop, 70.0);
  EXPECT_EQ(operator_cost(relu).backward_flop, 70.0);
  EXPECT_EQ(operator_cost(relu).forward_bytes, 560.0);
  const OperatorCall pool{"max_pool2d", {tensor({2, 3, 8, 8})}, {tensor({2, 3, 4, 4})}, {2, 2}};
  EXPECT_EQ(operator_cost(pool).forward_flop, 2.0 * 3 * 16 * 4);
  const OperatorCall norm{"batch_norm", {tensor({2, 3, 5, 5}, true), tensor({3}, true)}, {tensor({2, 3, 5, 5})}, {}};
  EXPECT_EQ(operator_cost(norm).forward_flop, 8.0 * 150);
  const OperatorCall view{"flatten", {tensor({2, 3, 5, 5}, true)}, {tensor({2, 75})}, {}};
  EXPECT_EQ(operator_cost(view).forward_flop, 0.0);
  EXPECT_EQ(operator_cost(view).forward_bytes, 0.0);
}

TEST(OperatorCost, SaysWhatItDoesNotKnow) {
  const OperatorCall strange{"fold_by_moonlight", {tensor({10})}, {tensor({5})}, {}};
  const OperatorCost cost = operator_cost(strange);
  EXPECT_FALSE(cost.known);
  EXPECT_EQ(cost.forward_flop, 0.0);
  EXPECT_EQ(cost.forward_bytes, 60.0);
}

}  // namespace
}  // namespace convoy::train

// Operators are counted as a pass calls them, and only while somebody counts.
#include "convoy/train/trace/operator_counter.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

TEST(OperatorCounter, CountsWhatIsCalledAndNotWhatThatCalls) {
  const torch::Tensor input = torch::ones({4, 3});
  const torch::Tensor weight = torch::ones({2, 3});
  OperatorCounter counter;
  counter.start();
  const torch::Tensor output = torch::linear(input, weight);  // calls a transposition and a product
  torch::relu(output);
  const OperatorCount count = counter.stop();
  EXPECT_EQ(count.operators, 2);
  EXPECT_GT(count.time_ns, 0);
}

TEST(OperatorCounter, CountsFromZeroEachTimeAndNothingInBetween) {
  const torch::Tensor input = torch::ones({4});
  OperatorCounter counter;
  counter.start();
  torch::relu(input);
  EXPECT_EQ(counter.stop().operators, 1);
  torch::relu(input);
  EXPECT_EQ(counter.stop().operators, 0) << "nobody counted";
  counter.start();
  torch::relu(torch::relu(input));
  EXPECT_EQ(counter.stop().operators, 2);
}

TEST(OperatorCounter, CountsBackwardToo) {
  const torch::Tensor weight = torch::ones({3}, torch::requires_grad());
  const torch::Tensor loss = (weight * 2).sum();
  OperatorCounter counter;
  counter.start();
  loss.backward();
  EXPECT_GE(counter.stop().operators, 2) << "an expansion and a product at least";
}

TEST(OperatorCounter, OneCountsAtATime) {
  OperatorCounter first;
  first.start();
  OperatorCounter second;
  EXPECT_THROW(second.start(), Error);
  first.stop();
  second.start();
  EXPECT_EQ(second.stop().operators, 0);
}

}  // namespace
}  // namespace convoy::train

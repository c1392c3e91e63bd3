// ResNet-20: its size, its shortcuts, and what it refuses.
#include "convoy/zoo/resnet.h"

#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "tests/support/ranks.h"

namespace convoy::zoo {
namespace {

ModelRequest images(std::vector<std::int64_t> shape) {
  ModelRequest request;
  request.recipe.name = "resnet20";
  request.sample_shape = std::move(shape);
  return request;
}

TEST(ResNet20, HasTheLayersAndParametersOfThePaper) {
  const auto model = reference_models().make(images({3, 32, 32}));
  std::int64_t parameters = 0;
  int weights = 0;
  for (const params::NamedTensor& parameter : model->parameters()) {
    parameters += parameter.tensor.numel();
    if (parameter.tensor.dim() >= 2) ++weights;
  }
  EXPECT_EQ(weights, 20);           // 19 convolutions and the linear layer
  EXPECT_EQ(parameters, 269722);    // 0.27 million in table 6 of the paper
}

TEST(ResNet20, ShortcutsTakeEverySecondPixelAndPadChannelsWithZeros) {
  torch::manual_seed(5);
  BasicBlock block(2, 6, 2);
  for (torch::Tensor& parameter : block->parameters()) torch::NoGradGuard(), parameter.zero_();
  const torch::Tensor input = torch::rand({1, 2, 4, 4});
  const torch::Tensor output = block(input);
  ASSERT_EQ(output.sizes().vec(), (std::vector<std::int64_t>{1, 6, 2, 2}));
  EXPECT_TRUE(torch::equal(output[0][2], input[0][0].slice(0, 0, 4, 2).slice(1, 0, 4, 2)));
  EXPECT_TRUE(torch::equal(output[0][3], input[0][1].slice(0, 0, 4, 2).slice(1, 0, 4, 2)));
  for (const int channel : {0, 1, 4, 5}) EXPECT_EQ(output[0][channel].abs().sum().item<float>(), 0.0F) << channel;
}

TEST(ResNet20, RefusesSamplesThatAreNoImagesOrDoNotDivide) {
  const Registry registry = reference_models();
  for (const auto& shape : {std::vector<std::int64_t>{3072}, std::vector<std::int64_t>{3, 30, 32}}) {
    const Error error = testing::error_of([&] { registry.make(images(shape)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("resnet20"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace convoy::zoo

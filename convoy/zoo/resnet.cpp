#include "convoy/zoo/resnet.h"

#include <fmt/format.h>

#include "convoy/base/error.h"
#include "convoy/zoo/layers.h"

namespace convoy::zoo {
namespace {

constexpr std::int64_t kFirstWidth = 16;
constexpr int kStages = 3;

torch::nn::Conv2d convolution(std::int64_t channels_in, std::int64_t channels_out, std::int64_t stride) {
  torch::nn::Conv2d layer(torch::nn::Conv2dOptions(channels_in, channels_out, 3).stride(stride).padding(1).bias(false));
  torch::nn::init::kaiming_normal_(layer->weight, 0.0, torch::kFanOut, torch::kReLU);
  return layer;
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(std::int64_t channels_in, std::int64_t channels_out, std::int64_t stride, bool synchronised)
    : stride_(stride), new_channels_(channels_out - channels_in) {
  conv1_ = register_module("conv1", convolution(channels_in, channels_out, stride));
  norm1_ = make_batch_norm(channels_out, synchronised);
  register_module("norm1", norm1_.ptr());
  conv2_ = register_module("conv2", convolution(channels_out, channels_out, 1));
  norm2_ = make_batch_norm(channels_out, synchronised);
  register_module("norm2", norm2_.ptr());
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& input) {
  torch::Tensor shortcut = input;
  if (stride_ > 1) shortcut = shortcut.slice(2, 0, c10::nullopt, stride_).slice(3, 0, c10::nullopt, stride_);
  if (new_channels_ > 0) {
    const std::int64_t before = new_channels_ / 2;
    shortcut = torch::constant_pad_nd(shortcut, {0, 0, 0, 0, before, new_channels_ - before});
  }
  const torch::Tensor x = torch::relu(norm1_.forward(conv1_(input)));
  return torch::relu(norm2_.forward(conv2_(x)) + shortcut);
}

ResNetImpl::ResNetImpl(const ModelRequest& request, int blocks) {
  const auto& shape = request.sample_shape;
  if (shape.size() != 3 || shape[1] % 4 != 0 || shape[2] % 4 != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[model] {}: its samples must be images whose sides divide by 4, not [{}]",
                            request.recipe.name, fmt::join(shape, ", ")));
  }
  conv_ = register_module("conv", convolution(shape[0], kFirstWidth, 1));
  norm_ = make_batch_norm(kFirstWidth, request.recipe.sync_batch_norm);
  register_module("norm", norm_.ptr());
  std::int64_t channels = kFirstWidth;
  for (int stage = 0; stage < kStages; ++stage) {
    const std::int64_t width = kFirstWidth << stage;
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      blocks_.push_back(register_module(fmt::format("stage{}_block{}", stage + 1, block + 1),
                                        BasicBlock(channels, width, stride, request.recipe.sync_batch_norm)));
      channels = width;
    }
  }
  output_ = register_module("output", torch::nn::Linear(channels, request.classes));
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& input) {
  torch::Tensor x = torch::relu(norm_.forward(conv_(input)));
  for (BasicBlock& block : blocks_) x = block(x);
  return output_(x.mean({2, 3}));
}

}  // namespace convoy::zoo

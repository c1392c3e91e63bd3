// ResNet for small images: 6n + 2 layers of basic blocks, as published for CIFAR-10 (n = 3: ResNet-20).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "convoy/zoo/registry.h"

namespace convoy::zoo {

/// Two 3x3 convolutions with batch norm, and a shortcut around them that has no parameters: where the block halves the
/// image and widens it, the shortcut takes every second pixel and fills the new channels with zeros.
/// Shapes:     input [B, K, H, W]; returns [B, W', H / stride, W / stride]
class BasicBlockImpl final : public torch::nn::Module {
 public:
  /// Makes a block from `channels_in` to `channels_out` channels, with batch norm as make_batch_norm makes it.
  BasicBlockImpl(std::int64_t channels_in, std::int64_t channels_out, std::int64_t stride, bool synchronised = false);
  /// Returns the activations.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  const std::int64_t stride_;
  const std::int64_t new_channels_;
  torch::nn::Conv2d conv1_ = nullptr;
  torch::nn::AnyModule norm1_;
  torch::nn::Conv2d conv2_ = nullptr;
  torch::nn::AnyModule norm2_;
};

/// Holds a BasicBlockImpl, as libtorch's own modules are held.
TORCH_MODULE(BasicBlock);

/// A residual network of three stages of 16, 32 and 64 channels with `blocks` blocks each, global average pooling and a
/// linear layer. Convolutions start from the normal distribution of He et al. (fan-out).
/// Shapes:     input [B, K, H, W], H and W multiples of 4; returns logits [B, C]
/// Errors:     kInvalidArgument when the sample is no image or its sides do not divide by 4
/// Source:     He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition (2016), section 4.2, shortcuts A:
///             0.27 million parameters for 3 blocks and 10 classes
class ResNetImpl final : public torch::nn::Module {
 public:
  /// Makes the layers for a request.
  ResNetImpl(const ModelRequest& request, int blocks);
  /// Returns the logits.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv2d conv_ = nullptr;
  torch::nn::AnyModule norm_;
  std::vector<BasicBlock> blocks_;
  torch::nn::Linear output_ = nullptr;
};

}  // namespace convoy::zoo

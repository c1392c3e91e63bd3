// The reference models: softmax regression, a multi-layer perceptron, and a CNN with batch norm and dropout.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "convoy/zoo/layers.h"
#include "convoy/zoo/registry.h"

namespace convoy::zoo {

/// Softmax regression: one linear layer.
/// Shapes:     input [B, ...sample]; returns logits [B, C]
class SoftmaxRegressionImpl final : public torch::nn::Module {
 public:
  /// Makes the layer for a request.
  explicit SoftmaxRegressionImpl(const ModelRequest& request);
  /// Returns the logits.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Linear linear_ = nullptr;
};

/// A multi-layer perceptron: linear layers of the recipe's widths with ReLU, dropout after each hidden one.
/// Shapes:     input [B, ...sample]; returns logits [B, C]
class MlpImpl final : public torch::nn::Module {
 public:
  /// Makes the layers for a request.
  explicit MlpImpl(const ModelRequest& request);
  /// Returns the logits.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  std::vector<torch::nn::Linear> hidden_;
  std::vector<PathDropout> dropouts_;
  torch::nn::Linear output_ = nullptr;
};

/// A CNN: 3x3 convolutions of the recipe's channels, each with batch norm and ReLU; each second one is followed by 2x2
/// max pooling and dropout; then a linear layer.
/// Shapes:     input [B, K, H, W]; returns logits [B, C]
/// Errors:     kInvalidArgument when the sample is not an image or pooling would leave nothing of it
class CnnImpl final : public torch::nn::Module {
 public:
  /// Makes the layers for a request.
  explicit CnnImpl(const ModelRequest& request);
  /// Returns the logits.
  torch::Tensor forward(const torch::Tensor& input);

 private:
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::AnyModule> norms_;
  std::vector<PathDropout> dropouts_;
  torch::nn::Linear output_ = nullptr;
};

}  // namespace convoy::zoo

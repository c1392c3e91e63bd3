#include "convoy/zoo/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::zoo {
namespace {

std::int64_t sample_elements(const ModelRequest& request) {
  return std::accumulate(request.sample_shape.begin(), request.sample_shape.end(), std::int64_t{1},
                         std::multiplies<std::int64_t>());
}

}  // namespace

SoftmaxRegressionImpl::SoftmaxRegressionImpl(const ModelRequest& request) {
  linear_ = register_module("linear", torch::nn::Linear(sample_elements(request), request.classes));
}

torch::Tensor SoftmaxRegressionImpl::forward(const torch::Tensor& input) { return linear_(input.flatten(1)); }

MlpImpl::MlpImpl(const ModelRequest& request) {
  std::int64_t width = sample_elements(request);
  for (std::size_t i = 0; i < request.recipe.hidden.size(); ++i) {
    const std::int64_t next = request.recipe.hidden[i];
    const std::string dropout = fmt::format("dropout{}", i + 1);
    hidden_.push_back(register_module(fmt::format("hidden{}", i + 1), torch::nn::Linear(width, next)));
    dropouts_.push_back(register_module(dropout, PathDropout(request.recipe.dropout, dropout)));
    width = next;
  }
  output_ = register_module("output", torch::nn::Linear(width, request.classes));
}

torch::Tensor MlpImpl::forward(const torch::Tensor& input) {
  torch::Tensor x = input.flatten(1);
  for (std::size_t i = 0; i < hidden_.size(); ++i) x = dropouts_[i](torch::relu(hidden_[i](x)));
  return output_(x);
}

CnnImpl::CnnImpl(const ModelRequest& request) {
  const auto& shape = request.sample_shape;
  if (shape.size() != 3) throw Error(ErrorCode::kInvalidArgument, "[model] cnn: its samples must be images");
  const std::vector<std::int64_t>& widths = request.recipe.channels;
  if (widths.empty()) throw Error(ErrorCode::kInvalidArgument, "[model] channels: the cnn needs at least one convolution");
  if ((std::min(shape[1], shape[2]) >> (widths.size() / 2)) < 1) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("[model] channels: {} convolutions pool an image of {} x {} away",
                                                         widths.size(), shape[1], shape[2]));
  }
  std::int64_t channels = shape[0];
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const auto options = torch::nn::Conv2dOptions(channels, widths[i], 3).padding(1).bias(!request.recipe.batch_norm);
    convolutions_.push_back(register_module(fmt::format("conv{}", i + 1), torch::nn::Conv2d(options)));
    channels = widths[i];
    if (request.recipe.batch_norm) {
      norms_.push_back(make_batch_norm(channels, request.recipe.sync_batch_norm));
      register_module(fmt::format("norm{}", i + 1), norms_.back().ptr());
    }
    if (i % 2 == 0) continue;
    const std::string dropout = fmt::format("dropout{}", i / 2 + 1);
    dropouts_.push_back(register_module(dropout, PathDropout(request.recipe.dropout, dropout)));
  }
  const std::int64_t pixels = (shape[1] >> (widths.size() / 2)) * (shape[2] >> (widths.size() / 2));
  output_ = register_module("output", torch::nn::Linear(channels * pixels, request.classes));
}

torch::Tensor CnnImpl::forward(const torch::Tensor& input) {
  torch::Tensor x = input;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    x = convolutions_[i](x);
    if (!norms_.empty()) x = norms_[i].forward(x);
    x = torch::relu(x);
    if (i % 2 == 1) x = dropouts_[i / 2](torch::max_pool2d(x, 2));
  }
  return output_(x.flatten(1));
}

}  // namespace convoy::zoo

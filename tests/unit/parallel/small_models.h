// Models of a few numbers whose losses and gradients can be told in advance.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "convoy/params/model.h"

namespace convoy::parallel {

// prediction w * x, loss = prediction: the gradient of a sample is x.
struct LineImpl : torch::nn::Module {
  LineImpl() { w = register_parameter("w", torch::zeros({1})); }
  torch::Tensor w;
};

inline std::unique_ptr<params::Model> make_line(const std::shared_ptr<LineImpl>& line) {
  return params::make_model(line, [](LineImpl& module, const params::Batch& batch) {
    params::Loss loss;
    loss.sum = (module.w * batch.input).sum();
    loss.count = batch.target.defined() ? batch.target.item<std::int64_t>() : batch.input.numel();
    return loss;
  });
}

inline params::Batch values(std::vector<float> x) { return {torch::tensor(x), {}}; }

// a is always used, b where the input is below 5, c from 5 on.
struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    a = register_parameter("a", torch::ones({1}));
    b = register_parameter("b", torch::ones({1}));
    c = register_parameter("c", torch::ones({1}));
  }
  torch::Tensor a, b, c;
};

inline std::unique_ptr<params::Model> make_branches(const std::shared_ptr<BranchesImpl>& module) {
  return params::make_model(module, [](BranchesImpl& net, const params::Batch& batch) {
    params::Loss loss;
    const float x = batch.input[0].item<float>();
    loss.sum = (net.a * batch.input).sum() + ((x < 5 ? net.b : net.c) * batch.input).sum();
    loss.count = 1;
    return loss;
  });
}

// Adds its input to every element of a buffer, and counts its forward passes in another.
struct BufferedImpl : torch::nn::Module {
  explicit BufferedImpl(float value, std::int64_t size = 1) {
    w = register_parameter("w", torch::full({2}, value));
    seen = register_buffer("seen", torch::full({size}, value));
    steps = register_buffer("steps", torch::zeros({}, torch::kInt64));
  }
  torch::Tensor w, seen, steps;
};

inline std::unique_ptr<params::Model> make_buffered(const std::shared_ptr<BufferedImpl>& module) {
  return params::make_model(module, [](BufferedImpl& net, const params::Batch& batch) {
    const torch::NoGradGuard no_grad;
    net.seen += batch.input.sum();
    net.steps += 1;
    const torch::AutoGradMode grad(true);
    params::Loss loss;
    loss.sum = (net.w * batch.input.sum()).sum();
    loss.count = 1;
    return loss;
  });
}

}  // namespace convoy::parallel

// Makes a TorchScript file without Python: a small convolutional net with batch norm and dropout.
#pragma once

#include <torch/script.h>

#include <string>

namespace convoy::testing {

/// Saves a net for [B, 1, rows, columns] images and 10 classes.
inline void save_script_net(const std::string& path, std::int64_t rows, std::int64_t columns) {
  torch::manual_seed(11);
  torch::jit::Module net("Net");
  net.register_attribute("training", torch::jit::BoolType::get(), true);
  const auto add = [&net](const char* name, const torch::Tensor& value) {
    net.register_parameter(name, value.detach().requires_grad_(), false);
  };
  add("filter", torch::randn({4, 1, 3, 3}) * 0.3);
  add("gain", torch::ones({4}));
  add("shift", torch::zeros({4}));
  net.register_buffer("running_mean", torch::zeros({4}));
  net.register_buffer("running_var", torch::ones({4}));
  add("weight", torch::randn({10, 4 * rows * columns}) * 0.01);
  add("bias", torch::zeros({10}));
  net.define(R"(
def forward(self, x):
    x = torch.conv2d(x, self.filter, None, [1, 1], [1, 1])
    x = torch.batch_norm(x, self.gain, self.shift, self.running_mean, self.running_var, self.training, 0.1, 1e-5, False)
    x = torch.dropout(torch.relu(x), 0.2, self.training)
    return torch.matmul(torch.flatten(x, 1), torch.t(self.weight)) + self.bias
)");
  net.save(path);
}

}  // namespace convoy::testing

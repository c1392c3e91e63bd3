// Writes a TorchScript module for 28 x 28 images, which `convoy run` trains as it is:
//   build/examples/script_module net.pt
//   convoy run examples/recipes/fashion_softmax.toml -n 2 --set model.script=net.pt
// A module that Python saved with torch.jit.script(net).save("net.pt") is used in the same way.
#include <torch/script.h>

#include <cstdio>
#include <exception>

namespace {

constexpr const char* kForward = R"(
def forward(self, x):
    x = torch.conv2d(x, self.filter, None, [2, 2], [1, 1])
    x = torch.batch_norm(x, self.gain, self.shift, self.running_mean, self.running_var, self.training, 0.1, 1e-5, False)
    x = torch.dropout(torch.relu(x), 0.1, self.training)
    return torch.matmul(torch.flatten(x, 1), torch.t(self.weight)) + self.bias
)";

torch::jit::Module make_net() {
  torch::manual_seed(1);
  torch::jit::Module net("Net");
  const auto parameter = [&net](const char* name, const torch::Tensor& value) {
    net.register_parameter(name, value.detach().requires_grad_(), false);
  };
  parameter("filter", torch::randn({8, 1, 3, 3}) * 0.3);
  parameter("gain", torch::ones({8}));
  parameter("shift", torch::zeros({8}));
  parameter("weight", torch::randn({10, 8 * 14 * 14}) * 0.02);
  parameter("bias", torch::zeros({10}));
  net.register_buffer("running_mean", torch::zeros({8}));
  net.register_buffer("running_var", torch::ones({8}));
  net.register_attribute("training", torch::jit::BoolType::get(), true);
  net.define(kForward);
  return net;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: script_module FILE\n");
    return 2;
  }
  try {
    make_net().save(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "script_module: %s\n", error.what());
    return 4;
  }
  return 0;
}

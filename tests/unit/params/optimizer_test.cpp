// Optimizers against libtorch's own, and what must not happen to parameters that nobody used.
#include "convoy/params/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>

#include "convoy/params/update/update_kernels.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::params {
namespace {

struct TwoImpl : torch::nn::Module {
  explicit TwoImpl(torch::ScalarType type) {
    torch::manual_seed(7);
    a = register_parameter("a", torch::randn({7, 5}, type));
    b = register_parameter("b", torch::randn({33}, type));
  }
  torch::Tensor a, b;
};

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)>;

// Runs 20 updates with the same gradients through both and returns the largest relative difference of a parameter.
double difference(const OptimizerOptions& options, torch::ScalarType type, const MakeOptimizer& make, double rate) {
  auto ours = std::make_shared<TwoImpl>(type);
  auto theirs = std::make_shared<TwoImpl>(type);
  ModuleModel model(ours, [](const Batch&) { return Loss(); });
  FlatSpace space(model);
  Optimizer optimizer(space, options);
  const auto reference = make(theirs->parameters());
  for (int step = 0; step < 20; ++step) {
    torch::manual_seed(100 + step);
    const std::vector<torch::Tensor> gradients{torch::randn({7, 5}, type), torch::randn({33}, type)};
    GradientSums sums;
    sums.flat = space.make_like();
    sums.scale.count = 13.0;
    sums.used = {true, true};
    for (int i = 0; i < 2; ++i) {
      space.view(sums.flat, space.slots()[i]).copy_(gradients[i] * 13.0);
      theirs->parameters()[i].mutable_grad() = gradients[i].clone();
    }
    optimizer.update(sums, rate);
    reference->step();
  }
  double worst = 0;
  for (int i = 0; i < 2; ++i) {
    const torch::Tensor expected = theirs->parameters()[i];
    worst = std::max(worst, ((ours->parameters()[i] - expected).norm() / expected.norm()).item<double>());
  }
  return worst;
}

MakeOptimizer torch_sgd(double rate, double momentum, double dampening, double decay, bool nesterov) {
  return [=](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(rate)
                                                                          .momentum(momentum)
                                                                          .dampening(dampening)
                                                                          .weight_decay(decay)
                                                                          .nesterov(nesterov));
  };
}

TEST(Optimizer, SgdEqualsLibtorchs) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const double bound = type == torch::kFloat32 ? 1e-6 : 1e-14;
    OptimizerOptions options;
    EXPECT_LT(difference(options, type, torch_sgd(0.1, 0, 0, 0, false), 0.1), bound) << "plain";
    options.weight_decay = 0.01;
    EXPECT_LT(difference(options, type, torch_sgd(0.1, 0, 0, 0.01, false), 0.1), bound) << "decay";
    options.momentum = 0.9;
    EXPECT_LT(difference(options, type, torch_sgd(0.1, 0.9, 0, 0.01, false), 0.1), bound) << "momentum";
    options.dampening = 0.3;
    EXPECT_LT(difference(options, type, torch_sgd(0.1, 0.9, 0.3, 0.01, false), 0.1), bound) << "dampening";
    options.dampening = 0;
    options.nesterov = true;
    EXPECT_LT(difference(options, type, torch_sgd(0.1, 0.9, 0, 0.01, true), 0.1), bound) << "Nesterov";
  }
}

TEST(Optimizer, AdamAndAdamWEqualLibtorchs) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const double bound = type == torch::kFloat32 ? 2e-6 : 1e-13;
    OptimizerOptions options;
    options.kind = "adam";
    options.weight_decay = 0.02;
    EXPECT_LT(difference(options, type,
                         [](auto parameters) {
                           return std::make_unique<torch::optim::Adam>(
                               parameters, torch::optim::AdamOptions(0.01).weight_decay(0.02));
                         },
                         0.01),
              bound);
    options.kind = "adamw";
    EXPECT_LT(difference(options, type,
                         [](auto parameters) {
                           return std::make_unique<torch::optim::AdamW>(
                               parameters, torch::optim::AdamWOptions(0.01).weight_decay(0.02));
                         },
                         0.01),
              bound);
  }
}

TEST(Optimizer, LeavesAParameterThatNobodyUsedBitwiseAlone) {
  for (const std::string kind : {"sgd", "adam", "adamw"}) {
    auto module = std::make_shared<TwoImpl>(torch::kFloat32);
    ModuleModel model(module, [](const Batch&) { return Loss(); });
    FlatSpace space(model);
    OptimizerOptions options;
    options.kind = kind;
    options.momentum = kind == "sgd" ? 0.9 : 0.0;
    options.weight_decay = 0.1;
    Optimizer optimizer(space, options);
    GradientSums sums{torch::ones_like(space.values()), {1.0, 1.0}, {true, true}};
    optimizer.update(sums, 0.1);
    const torch::Tensor a = module->a.clone();
    const torch::Tensor b = module->b.clone();
    sums.used = {true, false};
    optimizer.update(sums, 0.1);
    EXPECT_FALSE(torch::equal(a, module->a)) << kind;
    EXPECT_TRUE(torch::equal(b, module->b)) << kind << ": neither decay nor momentum may move it";
  }
}

TEST(Optimizer, GivesAnySliceTheSameBits) {
  torch::manual_seed(3);
  const std::int64_t n = 1003;
  const torch::Tensor start = torch::randn({n});
  const torch::Tensor sums = torch::randn({n});
  const GradientScale scale{7.0, 0.5};
  const AdamCoefficients c{0.01, 0.9, 0.999, 1e-8, 0.1, true, 3};
  const auto run = [&](std::vector<std::int64_t> borders) {
    torch::Tensor w = start.clone();
    torch::Tensor m = torch::full({n}, 0.25f);
    torch::Tensor v = torch::full({n}, 0.5f);
    for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
      const std::int64_t at = borders[i];
      adam_update(w.data_ptr<float>() + at, sums.data_ptr<float>() + at, m.data_ptr<float>() + at,
                  v.data_ptr<float>() + at, borders[i + 1] - at, scale, c);
    }
    return w;
  };
  EXPECT_TRUE(torch::equal(run({0, n}), run({0, 1, 2, 17, 500, 501, n})));
}

TEST(BlockSquareSums, AddUpToTheNormAndShowWhatIsNotFinite) {
  torch::manual_seed(5);
  const std::int64_t n = 3 * spec::kBlockElements + 77;
  torch::Tensor values = torch::randn({n});
  std::vector<double> blocks(4);
  block_square_sums(values.data_ptr<float>(), n, blocks.data());
  const double expected = values.to(torch::kFloat64).norm().item<double>();
  EXPECT_NEAR(std::sqrt(spec::tree_sum(blocks)), expected, 1e-12 * expected);
  values[spec::kBlockElements + 5] = std::numeric_limits<float>::infinity();
  block_square_sums(values.data_ptr<float>(), n, blocks.data());
  EXPECT_TRUE(std::isfinite(blocks[0]));
  EXPECT_FALSE(std::isfinite(blocks[1]));
  values[2 * spec::kBlockElements] = std::nanf("");
  block_square_sums(values.data_ptr<float>(), n, blocks.data());
  EXPECT_FALSE(std::isfinite(blocks[2]));
}

}  // namespace
}  // namespace convoy::params

// The promise of logical replicas: any number of ranks gives the same bits; and they are the right ones.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <mutex>

#include "convoy/base/hash.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "convoy/params/random_scope.h"
#include "tests/support/groups.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using params::Loss;
using testing::with_groups;

// A convolution with batch norm, a mask that belongs to its place, and two linear layers.
struct SmallCnnImpl : torch::nn::Module {
  SmallCnnImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(6));
    hidden = register_module("hidden", torch::nn::Linear(6 * 16, 40));
    output = register_module("output", torch::nn::Linear(40, 5));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = torch::relu(norm(conv(input))).flatten(1);
    if (const auto seed = params::layer_seed("mask")) {
      x = x * torch::bernoulli(torch::full_like(x, 0.75), at::detail::createCPUGenerator(*seed)) / 0.75;
    }
    return output(torch::relu(hidden(x)));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear hidden{nullptr}, output{nullptr};
};

Batch images(std::int64_t step, int replica, int micro, std::int64_t n) {
  torch::Tensor x = torch::empty({n, 1, 4, 4});
  torch::Tensor y = torch::empty({n}, torch::kInt64);
  auto generator = at::detail::createCPUGenerator(hash64(std::to_string(step * 1000 + replica * 10 + micro)));
  x.normal_(0, 1, generator);
  y.random_(0, 5, generator);
  return {x, y};
}

// Trains 8 steps on so many ranks and returns the digest of rank 0.
std::string train(int ranks, int replicas, bool overlap, std::int64_t bucket_bytes, const std::string& optimizer_kind,
                  bool divide = false, const spec::HostOfRank& hosts = {}) {
  torch::manual_seed(11);
  const SmallCnnImpl start;  // every rank starts from a copy of the same values
  std::string digest;
  with_groups(ranks, [&](comm::Group& group) {
    auto net = std::make_shared<SmallCnnImpl>();
    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < net->parameters().size(); ++i) net->parameters()[i].copy_(start.parameters()[i]);
    }
    const auto model = params::make_classifier(net);
    DataParallelOptions options;
    options.replicas = replicas;
    options.overlap = overlap;
    options.bucket_bytes = bucket_bytes;
    options.seed = 5;
    options.divide_update = divide;
    DataParallel parallel(*model, group, options);
    EXPECT_EQ(parallel.space().memory().shared(), divide && ranks > 1);
    params::OptimizerOptions optimizer_options;
    optimizer_options.kind = optimizer_kind;
    optimizer_options.momentum = optimizer_kind == "sgd" ? 0.9 : 0.0;
    optimizer_options.weight_decay = 0.01;
    params::Optimizer optimizer(parallel.space(), optimizer_options);
    for (int step = 0; step < 8; ++step) {
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        // replicas with different numbers of samples, micro-batches of different sizes
        mine.push_back({images(step, replica, 0, 3 + replica % 3), images(step, replica, 1, 2 + step % 2)});
      }
      StepResult result = parallel.step(step, mine);
      result.gradient.scale.clip = std::min(1.0, 0.5 / (result.gradient_norm + 1e-6));
      optimizer.update(result.gradient, 0.05);
    }
    const std::string mine = parallel.digest();
    if (group.rank() == 0) digest = mine;
  }, hosts);
  return digest;
}

TEST(Replicas, GiveTheSameBitsOnAnyNumberOfRanks) {
  torch::set_num_threads(1);
  for (const int replicas : {4, 5, 8}) {
    const std::string alone = train(1, replicas, true, 1 << 12, "sgd");
    for (int ranks = 2; ranks <= replicas; ++ranks) {
      EXPECT_EQ(train(ranks, replicas, true, 1 << 12, "sgd"), alone) << replicas << " replicas on " << ranks << " ranks";
    }
    EXPECT_NE(train(1, replicas - 1, true, 1 << 12, "sgd"), alone) << "the number of replicas is part of the result";
  }
}

TEST(Replicas, DoNotDependOnBucketsOrOverlap) {
  torch::set_num_threads(1);
  const std::string alone = train(1, 4, true, 1 << 20, "adam");
  EXPECT_EQ(train(3, 4, true, 1, "adam"), alone) << "a bucket for each parameter";
  EXPECT_EQ(train(3, 4, false, 1 << 12, "adam"), alone) << "without overlap";
  EXPECT_EQ(train(2, 4, true, 1 << 30, "adam"), alone) << "one bucket";
}

TEST(Replicas, GiveTheSameBitsWhereTheUpdateIsDivided) {
  torch::set_num_threads(1);
  for (const std::string kind : {"sgd", "adam", "adamw"}) {
    const std::string alone = train(1, 8, true, 1 << 12, kind);
    for (int ranks = 1; ranks <= 8; ++ranks) {
      EXPECT_EQ(train(ranks, 8, true, 1 << 12, kind, true), alone) << kind << " on " << ranks << " ranks";
    }
    EXPECT_EQ(train(3, 8, false, 1 << 30, kind, true), alone) << kind << " in one bucket, without overlap";
    EXPECT_EQ(train(3, 8, true, 1, kind, true), alone) << kind << " in a bucket for each parameter";
  }
}

TEST(Replicas, GiveTheSameBitsWhereTheUpdateIsDividedInsideEachHost) {
  torch::set_num_threads(1);
  const std::string alone = train(1, 8, true, 1 << 12, "adam");
  EXPECT_EQ(train(4, 8, true, 1 << 12, "adam", true, {0, 0, 1, 1}), alone);
  EXPECT_EQ(train(3, 8, true, 1 << 12, "adam", true, {0, 1, 1}), alone) << "one rank alone on its host";
  EXPECT_EQ(train(5, 8, true, 1 << 12, "adam", true, {0, 0, 0, 1, 1}), alone) << "hosts of different sizes";
}

// Logistic regression in float64 on eight unequal parts.
struct LogisticImpl : torch::nn::Module {
  LogisticImpl() { w = register_parameter("w", torch::linspace(-0.3, 0.4, 12, torch::kFloat64)); }
  torch::Tensor w;
};

TEST(Replicas, WeightUnequalPartsExactly) {
  torch::manual_seed(2);
  const torch::Tensor x = torch::randn({157, 12}, torch::kFloat64) + 0.3;
  const torch::Tensor y = (torch::rand({157}, torch::kFloat64) < 0.35).to(torch::kFloat64);
  const std::vector<std::int64_t> borders{0, 1, 4, 20, 21, 60, 61, 110, 157};
  const auto loss_sum = [](const torch::Tensor& w, const torch::Tensor& input, const torch::Tensor& target) {
    return torch::binary_cross_entropy_with_logits(input.mv(w), target, {}, {}, at::Reduction::Sum);
  };
  // The whole batch at once, and the mean of the parts' means.
  const auto gradient_of = [&](std::int64_t begin, std::int64_t end) {
    LogisticImpl net;
    (loss_sum(net.w, x.slice(0, begin, end), y.slice(0, begin, end)) / static_cast<double>(end - begin)).backward();
    return net.w.grad().clone();
  };
  const torch::Tensor whole = gradient_of(0, 157);
  torch::Tensor mean_of_means = torch::zeros({12}, torch::kFloat64);
  for (int part = 0; part < 8; ++part) mean_of_means += gradient_of(borders[part], borders[part + 1]) / 8.0;

  for (const int ranks : {1, 3, 8}) {
    with_groups(ranks, [&](comm::Group& group) {
      auto net = std::make_shared<LogisticImpl>();
      const auto model = params::make_model(net, [&](LogisticImpl& module, const Batch& batch) {
        Loss loss;
        loss.sum = loss_sum(module.w, batch.input, batch.target);
        loss.count = batch.input.size(0);
        return loss;
      });
      DataParallelOptions options;
      options.replicas = 8;
      DataParallel parallel(*model, group, options);
      std::vector<std::vector<Batch>> mine;
      for (int part = parallel.replicas().begin; part < parallel.replicas().end; ++part) {
        mine.push_back({{x.slice(0, borders[part], borders[part + 1]), y.slice(0, borders[part], borders[part + 1])}});
      }
      const StepResult result = parallel.step(0, mine);
      const torch::Tensor weighted = result.gradient.flat.slice(0, 0, 12) / result.gradient.scale.count;
      EXPECT_LT(((weighted - whole).norm() / whole.norm()).item<double>(), 1e-15) << ranks << " ranks";
      EXPECT_GT(((mean_of_means - whole).norm() / whole.norm()).item<double>(), 0.05)
          << "the mean of means must be visibly different, or this test shows nothing";
    });
  }
}

TEST(Replicas, EqualAHandWrittenLoop) {
  torch::set_num_threads(1);
  const auto relative = [](const torch::Tensor& a, const torch::Tensor& b) {
    return ((a - b).norm() / b.norm()).item<double>();
  };
  struct PlainImpl : torch::nn::Module {
    PlainImpl() {
      conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3).padding(1)));
      norm = register_module("norm", torch::nn::BatchNorm2d(6));
      output = register_module("output", torch::nn::Linear(6 * 16, 5));
    }
    torch::Tensor forward(const torch::Tensor& x) { return output(torch::relu(norm(conv(x))).flatten(1)); }
    torch::nn::Conv2d conv{nullptr};
    torch::nn::BatchNorm2d norm{nullptr};
    torch::nn::Linear output{nullptr};
  };
  torch::manual_seed(4);
  auto plain = std::make_shared<PlainImpl>();
  torch::manual_seed(4);
  auto ours = std::make_shared<PlainImpl>();
  torch::optim::SGD reference(plain->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
  with_groups(1, [&](comm::Group& group) {
    const auto model = params::make_classifier(ours);
    DataParallel parallel(*model, group, DataParallelOptions{});
    params::OptimizerOptions options;
    options.momentum = 0.9;
    options.weight_decay = 1e-3;
    params::Optimizer optimizer(parallel.space(), options);
    for (int step = 0; step < 20; ++step) {
      const Batch batch = images(step, 0, 0, 32);
      reference.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(plain->forward(batch.input), batch.target);
      loss.backward();
      const StepResult result = parallel.step(step, std::vector<std::vector<Batch>>{{batch}});
      EXPECT_NEAR(result.loss, loss.item<double>(), 1e-6 * loss.item<double>()) << "loss of step " << step;
      for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
        const params::ParameterSlot& slot = parallel.space().slots()[i];
        if (slot.name == "conv.bias") continue;  // batch norm removes it: its gradient is rounding noise
        const torch::Tensor gradient = parallel.space().view(result.gradient.flat, slot) / result.count;
        EXPECT_LT(relative(gradient, plain->parameters()[i].grad()), 1e-6 * (1 + step)) << slot.name << ", step " << step;
      }
      reference.step();
      optimizer.update(result.gradient, 0.05);
    }
    for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
      const params::ParameterSlot& slot = parallel.space().slots()[i];
      EXPECT_LT(relative(slot.tensor, plain->parameters()[i]), 1e-6) << slot.name << " after 20 steps";
    }
  });
}

}  // namespace
}  // namespace convoy::parallel

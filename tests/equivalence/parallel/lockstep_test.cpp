// Models that compute over all replicas: synchronised batch norm gives the statistics of the whole batch, and the same bits
// on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <mutex>

#include "convoy/base/hash.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/parallel/data/sync_batch_norm.h"
#include "convoy/params/optimizer.h"
#include "convoy/params/random_scope.h"
#include "tests/support/groups.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using params::Loss;
using testing::with_groups;

// A mask that belongs to the place of its layer. (Ranks that are threads share libtorch's generator; see below.)
torch::Tensor mask(const torch::Tensor& x, const char* path) {
  const auto seed = params::layer_seed(path);
  if (!seed) return x;
  return x * torch::bernoulli(torch::full_like(x, 0.75), at::detail::createCPUGenerator(*seed)) / 0.75;
}

// Convolutions with synchronised batch norm, and ordinary one with buffers that belong to the replica.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
    norm = register_module("norm", SyncBatchNorm(SyncBatchNormOptions{4}));
    second = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, 3).padding(1).bias(false)));
    plain = register_module("plain", torch::nn::BatchNorm2d(6));
    last = register_module("last", SyncBatchNorm(SyncBatchNormOptions{6}));
    output = register_module("output", torch::nn::Linear(6 * 16, 3));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = mask(torch::relu(norm(conv(input))), "first");
    x = mask(torch::relu(last(plain(second(x)))), "second");
    return output(x.flatten(1));
  }
  torch::nn::Conv2d conv{nullptr}, second{nullptr};
  torch::nn::BatchNorm2d plain{nullptr};
  SyncBatchNorm norm{nullptr}, last{nullptr};
  torch::nn::Linear output{nullptr};
};

Batch images(std::int64_t step, int replica, int micro, std::int64_t n) {
  auto generator = at::detail::createCPUGenerator(hash64(std::to_string(step * 1000 + replica * 10 + micro)));
  torch::Tensor x = torch::empty({n, 1, 4, 4});
  torch::Tensor y = torch::empty({n}, torch::kInt64);
  x.normal_(0.5, 2, generator);
  y.random_(0, 3, generator);
  return {x, y};
}

std::string train(int ranks, int replicas, bool divide, std::int64_t bucket_bytes) {
  std::string digest;
  std::mutex building;
  with_groups(ranks, [&](comm::Group& group) {
    std::shared_ptr<NetImpl> net;
    {
      const std::lock_guard<std::mutex> lock(building);  // libtorch's generator is the process's
      torch::manual_seed(11);
      net = std::make_shared<NetImpl>();
    }
    const auto model = params::make_classifier(net);
    DataParallelOptions options;
    options.replicas = replicas;
    options.bucket_bytes = bucket_bytes;
    options.divide_update = divide;
    options.seed = 5;
    DataParallel parallel(*model, group, options);
    params::OptimizerOptions sgd;
    sgd.momentum = 0.9;
    params::Optimizer optimizer(parallel.space(), sgd);
    for (int step = 0; step < 4; ++step) {
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        mine.push_back({images(step, replica, 0, 2 + replica % 3), images(step, replica, 1, 1 + step % 2)});
        // Replicas without samples, in one micro-batch or in all of a step.
        if (step == 2 && replica == replicas - 1) mine.back()[1] = {};
        if (step == 3 && replica >= replicas / 2) mine.back() = {Batch{}, Batch{}};
      }
      const StepResult result = parallel.step(step, mine);
      optimizer.update(result.gradient, 0.05);
    }
    const std::string mine = parallel.digest();
    if (group.rank() == 0) digest = mine;
  });
  return digest;
}

TEST(Lockstep, GivesTheSameBitsOnAnyNumberOfRanks) {
  torch::set_num_threads(1);
  const std::string alone = train(1, 8, false, 1 << 10);
  for (int ranks = 2; ranks <= 8; ++ranks) EXPECT_EQ(train(ranks, 8, true, 1 << 10), alone) << ranks << " ranks";
  EXPECT_EQ(train(3, 8, false, 1 << 30), alone) << "one bucket, undivided";
  EXPECT_EQ(train(3, 8, true, 1), alone) << "a bucket for each parameter";
}

// Runs one step on ranks with the given rows of one replica each, and hands each rank's model to `look`.
struct OneLayerImpl : torch::nn::Module {
  OneLayerImpl() {
    norm = register_module("norm", SyncBatchNorm(SyncBatchNormOptions{1}));
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return norm(x) * scale; }
  SyncBatchNorm norm{nullptr};
  torch::Tensor scale;
};

Batch rows(const std::vector<float>& values) {
  return {torch::tensor(values, torch::kFloat32).view({-1, 1}), torch::Tensor()};
}

TEST(SyncBatchNorm, CountsExactlyWhereARankHasNoRows) {
  // Rank 1 has an empty tensor, then no batch at all, then rank 0 has nothing either.
  for (const bool empty_tensor : {true, false}) {
    with_groups(2, [&](comm::Group& group) {
      auto net = std::make_shared<OneLayerImpl>();
      const auto model = params::make_model(net, [](OneLayerImpl& module, const Batch& batch) {
        Loss loss;
        loss.output = module.forward(batch.input);
        loss.sum = (loss.output * batch.input).sum();
        loss.count = batch.input.size(0);
        return loss;
      });
      DataParallelOptions options;
      options.replicas = 2;
      DataParallel parallel(*model, group, options);
      const Batch none = empty_tensor ? rows({}) : Batch{};
      const std::vector<std::vector<Batch>> batches = {{group.rank() == 0 ? rows({1, 3}) : none}};
      const StepResult result = parallel.step(0, batches);
      EXPECT_EQ(result.count, 2);
      // Mean 2 and biased variance 1: the output is -1 and 1, the loss -1 + 3.
      EXPECT_NEAR(result.loss, 2.0 / 2, 1e-4);
      if (group.rank() == 0 || empty_tensor) {
        EXPECT_FLOAT_EQ(net->norm->buffers()[0].item<float>(), 0.1F * 2) << "running mean";
        EXPECT_FLOAT_EQ(net->norm->buffers()[1].item<float>(), 0.9F + 0.1F * 2) << "running variance, unbiased";
      }
      const torch::Tensor before = net->norm->buffers()[0].clone();
      const std::vector<std::vector<Batch>> nothing = {{rows({})}};
      EXPECT_EQ(testing::error_of([&] { parallel.step(1, nothing); }).code(), ErrorCode::kFailed) << "nothing counted";
      EXPECT_TRUE(net->norm->buffers()[0].equal(before));
    });
  }
}

TEST(SyncBatchNorm, EqualsBatchNormOverTheWholeBatch) {
  torch::set_num_threads(1);
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({13, 3, 2, 2}, torch::kFloat64) * 2 + 1;
  const torch::Tensor weights = torch::randn({13, 3, 2, 2}, torch::kFloat64);
  torch::nn::BatchNorm2d whole(3);
  whole->to(torch::kFloat64);
  torch::Tensor input = x.clone().requires_grad_();
  (whole(input).pow(2) * weights).sum().backward();
  const std::vector<std::int64_t> borders = {0, 1, 6, 13};
  with_groups(3, [&](comm::Group& group) {
    struct Net : torch::nn::Module {
      Net() { norm = register_module("norm", SyncBatchNorm(SyncBatchNormOptions{3})); }
      SyncBatchNorm norm{nullptr};
    };
    auto net = std::make_shared<Net>();
    net->to(torch::kFloat64);
    const std::int64_t begin = borders[static_cast<std::size_t>(group.rank())];
    const std::int64_t end = borders[static_cast<std::size_t>(group.rank()) + 1];
    torch::Tensor part = x.slice(0, begin, end).clone().requires_grad_();
    const auto model = params::make_model(net, [&](Net& module, const Batch& batch) {
      Loss loss;
      loss.sum = (module.norm(batch.input).pow(2) * weights.slice(0, begin, end)).sum();
      loss.count = batch.input.size(0);
      return loss;
    });
    DataParallelOptions options;
    options.replicas = 3;
    DataParallel parallel(*model, group, options);
    const StepResult result = parallel.step(0, std::vector<std::vector<Batch>>{{Batch{part, {}}}});
    const auto close = [](const torch::Tensor& a, const torch::Tensor& b) { return torch::allclose(a, b, 1e-10, 1e-12); };
    EXPECT_TRUE(close(part.grad(), input.grad().slice(0, begin, end))) << "the gradient of the input";
    EXPECT_TRUE(close(parallel.space().view(result.gradient.flat, parallel.space().slots()[0]), whole->weight.grad()));
    EXPECT_TRUE(close(parallel.space().view(result.gradient.flat, parallel.space().slots()[1]), whole->bias.grad()));
    EXPECT_TRUE(close(net->norm->buffers()[0], whole->running_mean));
    EXPECT_TRUE(close(net->norm->buffers()[1], whole->running_var));
  });
}

TEST(Lockstep, KeepsEachReplicasRandomNumbersApart) {
  // Two draws from libtorch's generator with a meeting between them: as if the replica were alone.
  struct Net : torch::nn::Module {
    Net() { norm = register_module("norm", SyncBatchNorm(SyncBatchNormOptions{1})); }
    SyncBatchNorm norm{nullptr};
  };
  auto net = std::make_shared<Net>();
  std::vector<torch::Tensor> drawn;
  const auto model = params::make_model(net, [&](Net& module, const Batch& batch) {
    const torch::Tensor first = torch::rand({4});
    Loss loss;
    loss.sum = module.norm(batch.input).sum();
    drawn.push_back(torch::cat({first, torch::rand({4})}));
    loss.count = batch.input.size(0);
    return loss;
  });
  with_groups(1, [&](comm::Group& group) {
    DataParallelOptions options;
    options.replicas = 3;
    options.seed = 9;
    DataParallel parallel(*model, group, options);
    parallel.step(7, std::vector<std::vector<Batch>>{{rows({1, 2})}, {rows({3})}, {rows({4, 5})}});
  });
  ASSERT_EQ(drawn.size(), 3U);
  for (int replica = 0; replica < 3; ++replica) {
    const params::RandomScope place({9, 7, replica, 0});
    EXPECT_TRUE(drawn[static_cast<std::size_t>(replica)].equal(torch::cat({torch::rand({4}), torch::rand({4})})));
  }
}

TEST(Lockstep, EndsWithAnErrorWhereReplicasDoNotMeetAlike) {
  struct Net : torch::nn::Module {
    Net() {
      one = register_module("one", SyncBatchNorm(SyncBatchNormOptions{1}));
      two = register_module("two", SyncBatchNorm(SyncBatchNormOptions{2}));
    }
    SyncBatchNorm one{nullptr}, two{nullptr};
  };
  for (const int ranks : {1, 2}) {
    for (const bool skips : {false, true}) {
      if (skips && ranks == 2) continue;  // a rank's replica that does not come counts as without samples
      std::vector<std::string> messages(static_cast<std::size_t>(ranks));
      const auto thrown = testing::collect_ranks(1, [&](int) {
        with_groups(ranks, [&](comm::Group& group) {
          auto net = std::make_shared<Net>();
          const auto model = params::make_model(net, [&](Net& module, const Batch& batch) {
            Loss loss;
            const bool odd = batch.input.size(0) == 1;
            if (odd && skips) {
              loss.sum = module.one->parameters()[0].sum();
            } else {
              loss.sum = odd ? module.two(batch.input.expand({1, 2})).sum() : module.one(batch.input).sum();
            }
            loss.count = 1;
            return loss;
          });
          DataParallelOptions options;
          options.replicas = 2;
          DataParallel parallel(*model, group, options);
          const std::vector<Batch> even = {rows({1, 2})};
          const std::vector<Batch> odd = {rows({1})};
          const auto mine = ranks == 1 ? std::vector<std::vector<Batch>>{even, odd}
                                       : std::vector<std::vector<Batch>>{group.rank() == 0 ? even : odd};
          const Error error = testing::error_of([&] { parallel.step(0, mine); });
          messages[static_cast<std::size_t>(group.rank())] = error.message();
          EXPECT_EQ(error.code(), ErrorCode::kDesync) << error.message();
        });
      });
      EXPECT_FALSE(thrown[0]) << testing::error_in(thrown[0]).message();
      for (const std::string& message : messages) EXPECT_THAT(message, ::testing::HasSubstr("over all replicas"));
    }
  }
}

// A parameter that is used twice, and a loss of two sums with a backward pass each.
struct TwiceImpl : torch::nn::Module {
  TwiceImpl() {
    shared = register_parameter("shared", torch::tensor({0.5, -1.0, 2.0}, torch::kFloat64));
    other = register_parameter("other", torch::tensor({1.0, 3.0, -2.0}, torch::kFloat64));
  }
  torch::Tensor shared, other;
};

TEST(Passes, AddUpSeveralUsesAndSeveralBackwardPasses) {
  const auto gradients = [](int ranks, bool split) {
    std::vector<torch::Tensor> found;
    with_groups(ranks, [&](comm::Group& group) {
      auto net = std::make_shared<TwiceImpl>();
      const auto model = params::make_model(net, [&](TwiceImpl& module, const Batch& batch) {
        const torch::Tensor hidden = module.shared * batch.input;
        const torch::Tensor first = (hidden * module.shared).sum();
        const torch::Tensor second = (hidden * module.other).sum();
        Loss loss;
        loss.sum = split ? first : first + second;
        if (split) loss.further_sums = {second};
        loss.count = batch.input.size(0);
        return loss;
      });
      DataParallelOptions options;
      options.replicas = 4;
      DataParallel parallel(*model, group, options);
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        const auto micro = [&](double value) { return Batch{torch::full({2, 3}, value + replica, torch::kFloat64), {}}; };
        mine.push_back({micro(1), micro(2)});
      }
      const StepResult result = parallel.step(0, mine);
      if (group.rank() == 0) found = {result.gradient.flat.clone(), torch::tensor(result.loss)};
    });
    return found;
  };
  const auto whole = gradients(1, false);
  // d/dshared of (x s^2 + x s o): x (2 s + o), summed over 2 rows of 1 + r and 2 + r: x = 2 (3 + 2 r) over 4 replicas = 48.
  EXPECT_DOUBLE_EQ(whole[0][0].item<double>(), 48 * (2 * 0.5 + 1.0));
  for (const int ranks : {1, 2, 3, 4}) {
    const auto parts = gradients(ranks, true);
    EXPECT_TRUE(parts[0].equal(whole[0])) << ranks << " ranks: these numbers have exact sums";
    EXPECT_TRUE(parts[1].equal(whole[1]));
  }
}

}  // namespace
}  // namespace convoy::parallel

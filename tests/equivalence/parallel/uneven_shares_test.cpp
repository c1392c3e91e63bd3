// Uneven shares: ranks may carry any numbers of replicas, and the bits stay those of one rank.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convoy/base/hash.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/parallel/data/sync_batch_norm.h"
#include "convoy/params/optimizer.h"
#include "convoy/params/random_scope.h"
#include "tests/support/groups.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using testing::with_groups;

constexpr int kReplicas = 12;

using Owners = std::vector<spec::ReplicaRange>;

// An embedding with sparse gradients, a convolution, batch norm of either kind and a mask that belongs to its place.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool synchronised) {
    words = register_module("words", torch::nn::Embedding(torch::nn::EmbeddingOptions(50, 16).sparse(true)));
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3).padding(1)));
    if (synchronised) {
      together = register_module("together", SyncBatchNorm(SyncBatchNormOptions{6}));
    } else {
      norm = register_module("norm", torch::nn::BatchNorm2d(6));
    }
    output = register_module("output", torch::nn::Linear(6 * 16, 5));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = conv(words(input).view({-1, 1, 4, 4}));
    x = norm ? norm(x) : together(x);
    x = torch::relu(x).flatten(1);
    // A mask of its place's own: ranks are threads here, and would draw libtorch's default generator from each other.
    if (const auto seed = params::layer_seed("mask")) {
      x = x * torch::bernoulli(torch::full_like(x, 0.75), at::detail::createCPUGenerator(*seed)) / 0.75;
    }
    return output(x);
  }
  torch::nn::Embedding words{nullptr};
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  SyncBatchNorm together{nullptr};
  torch::nn::Linear output{nullptr};
};

// Replicas have different numbers of samples, and replica 7 none in step 1.
Batch words(std::int64_t step, int replica, int micro) {
  const std::int64_t n = 2 + (replica + micro) % 3;
  if (step == 1 && replica == 7) return {};
  torch::Tensor x = torch::empty({n}, torch::kInt64);
  torch::Tensor y = torch::empty({n}, torch::kInt64);
  auto generator = at::detail::createCPUGenerator(hash64(std::to_string(step * 1000 + replica * 10 + micro)));
  x.random_(0, 50, generator);
  y.random_(0, 5, generator);
  return {x, y};
}

struct Outcome {
  std::string digest;
  double loss = 0.0;
  torch::Tensor merged;
};

// Trains five steps on as many ranks as there are owners.
Outcome train(const Owners& owners, bool synchronised, bool divide) {
  Outcome outcome;
  with_groups(static_cast<int>(owners.size()), [&](comm::Group& group) {
    auto net = std::make_shared<NetImpl>(synchronised);
    {
      const torch::NoGradGuard no_grad;
      auto generator = at::detail::createCPUGenerator(3);
      for (torch::Tensor& parameter : net->parameters()) parameter.normal_(0, 0.3, generator);
    }
    const auto model = params::make_classifier(net);
    DataParallelOptions options;
    options.replicas = kReplicas;
    options.owners = owners;
    options.bucket_bytes = 1 << 10;
    options.seed = 5;
    options.divide_update = divide;
    DataParallel parallel(*model, group, options);
    params::OptimizerOptions optimizer_options;
    optimizer_options.momentum = 0.9;
    params::Optimizer optimizer(parallel.space(), optimizer_options);
    double loss = 0.0;
    for (int step = 0; step < 5; ++step) {
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        mine.push_back({words(step, replica, 0), words(step, replica, 1)});
      }
      const StepResult result = parallel.step(step, mine);
      optimizer.update(result.gradient, 0.05);
      loss = result.loss;
    }
    const std::string digest = parallel.digest();
    parallel.load_merged_buffers();
    if (group.rank() == 0) outcome = {digest, loss, net->buffers().front().clone()};
  });
  return outcome;
}

const std::vector<Owners> kUneven = {
    {{0, 8}, {8, 12}}, {{0, 1}, {1, 12}}, {{0, 11}, {11, 12}}, {{0, 6}, {6, 12}}, {{0, 3}, {3, 4}, {4, 11}, {11, 12}}};

void expect_one_result(bool synchronised, bool divide) {
  torch::set_num_threads(1);
  const Outcome alone = train({{0, kReplicas}}, synchronised, false);
  for (const Owners& owners : kUneven) {
    const Outcome shared = train(owners, synchronised, divide);
    EXPECT_EQ(shared.digest, alone.digest) << spec::describe_owners(owners);
    EXPECT_EQ(shared.loss, alone.loss) << spec::describe_owners(owners);
    EXPECT_TRUE(torch::equal(shared.merged, alone.merged)) << spec::describe_owners(owners);
  }
}

TEST(UnevenShares, GiveTheBitsOfOneRank) { expect_one_result(false, false); }

TEST(UnevenShares, GiveTheBitsOfOneRankWhereTheUpdateIsDivided) { expect_one_result(false, true); }

TEST(UnevenShares, GiveTheBitsOfOneRankInLockstep) { expect_one_result(true, true); }

}  // namespace
}  // namespace convoy::parallel

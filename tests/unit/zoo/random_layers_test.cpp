// Random layers on several ranks: masks differ by replica, agree at the same place, and stay so whatever else draws.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <mutex>

#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/random_scope.h"
#include "convoy/zoo/layers.h"
#include "convoy/zoo/registry.h"
#include "tests/support/groups.h"

namespace convoy::zoo {
namespace {

using testing::with_groups;

constexpr std::int64_t kActivations = 1000;

// Dropout over many activations, whose masks are kept.
struct MaskedImpl : torch::nn::Module {
  MaskedImpl() {
    w = register_parameter("w", torch::ones({kActivations}));
    dropout = register_module("dropout", PathDropout(0.5, "dropout"));
  }
  torch::Tensor w;
  PathDropout dropout{nullptr};
  std::vector<torch::Tensor> masks;
};

std::unique_ptr<params::Model> make_masked(const std::shared_ptr<MaskedImpl>& module) {
  return params::make_model(module, [](MaskedImpl& net, const params::Batch& batch) {
    const torch::Tensor kept = net.dropout(net.w * batch.input);
    net.masks.push_back(kept.detach() != 0);
    params::Loss loss;
    loss.sum = kept.sum();
    loss.count = 1;
    return loss;
  });
}

// The masks of two replicas in two steps, by (step, replica), on this many ranks.
std::vector<torch::Tensor> masks_of(int ranks, std::uint64_t seed) {
  std::vector<torch::Tensor> masks(4);
  std::mutex mutex;
  with_groups(ranks, [&](comm::Group& group) {
    auto net = std::make_shared<MaskedImpl>();
    auto model = make_masked(net);
    parallel::DataParallelOptions options;
    options.replicas = 2;
    options.seed = seed;
    parallel::DataParallel parallel(*model, group, options);
    const spec::ReplicaRange mine = parallel.replicas();
    for (int step = 0; step < 2; ++step) {
      net->masks.clear();
      const std::vector<params::Batch> input{{torch::ones({1}), {}}};
      parallel.step(step, std::vector(static_cast<std::size_t>(mine.size()), input));
      const std::lock_guard lock(mutex);
      for (int replica = mine.begin; replica < mine.end; ++replica) {
        masks[static_cast<std::size_t>(2 * step + replica)] =
            net->masks[static_cast<std::size_t>(replica - mine.begin)];
      }
    }
  });
  return masks;
}

std::int64_t agreeing(const torch::Tensor& a, const torch::Tensor& b) { return (a == b).sum().item<std::int64_t>(); }

TEST(PathDropout, DiffersByReplicaAndAgreesAtTheSamePlaceOnAnyNumberOfRanks) {
  const std::vector<torch::Tensor> two = masks_of(2, 7);
  const std::vector<torch::Tensor> one = masks_of(1, 7);
  for (std::size_t a = 0; a < 4; ++a) {
    EXPECT_EQ(agreeing(two[a], one[a]), kActivations) << "the same step and replica";
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_GE(agreeing(two[a], two[b]), 400) << a << " and " << b;
      EXPECT_LE(agreeing(two[a], two[b]), 600) << "masks of other steps or replicas are independent";
    }
  }
  EXPECT_LE(agreeing(two[0], masks_of(2, 8)[0]), 600) << "another seed";
}

TEST(PathDropout, HasOneMaskForReplicatedActivationsWhateverElseWasDrawn) {
  PathDropout first(0.5, "block.dropout");
  PathDropout second(0.5, "block.dropout");
  PathDropout other(0.5, "head.dropout");
  const auto mask = [](PathDropout& layer, int draws) {
    const params::RandomScope scope({3, 4, 0, 0});
    if (draws > 0) torch::rand({draws});
    return layer(torch::ones({kActivations})) != 0;
  };
  EXPECT_EQ(agreeing(mask(first, 0), mask(second, 13)), kActivations);
  EXPECT_LE(agreeing(mask(first, 0), mask(other, 0)), 600);
}

TEST(Zoo, GivesEveryRankTheSameInitialWeights) {
  for (const std::string name : {"softmax", "mlp", "cnn", "resnet20"}) {
    ModelRequest request;
    request.recipe.name = name;
    request.recipe.dropout = name == "softmax" || name == "resnet20" ? 0.0 : 0.5;
    request.sample_shape = {1, 28, 28};
    const auto make = [&](std::uint64_t seed) {
      torch::manual_seed(seed);
      return reference_models().make(request)->parameters();
    };
    const auto rank_0 = make(5);
    torch::rand({11});  // a rank that drew numbers for something else
    const auto rank_1 = make(5);
    const auto another = make(6);
    ASSERT_EQ(rank_0.size(), rank_1.size());
    bool differs = false;
    for (std::size_t i = 0; i < rank_0.size(); ++i) {
      EXPECT_TRUE(torch::equal(rank_0[i].tensor, rank_1[i].tensor)) << name << ": " << rank_0[i].name;
      differs = differs || !torch::equal(rank_0[i].tensor, another[i].tensor);
    }
    EXPECT_EQ(differs, true) << name << ": another seed must show, or this test shows nothing";
  }
}

}  // namespace
}  // namespace convoy::zoo

// Parameters that a replica leaves out: counted as zero or refused by name; and left alone where nobody uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "convoy/base/error.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "tests/support/groups.h"
#include "tests/unit/parallel/small_models.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::with_groups;

// The gradient per counted sample, as an optimizer sees it.
double mean_gradient(const StepResult& result, std::int64_t element) {
  return result.gradient.flat[element].item<double>() / result.gradient.scale.count;
}

// One micro-batch for each replica of the rank; x[replica] chooses b (below 5) or c, and is its gradient.
std::vector<std::vector<Batch>> inputs(const DataParallel& parallel, const std::vector<float>& x) {
  std::vector<std::vector<Batch>> mine;
  for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
    mine.push_back({values({x[static_cast<std::size_t>(replica)]})});
  }
  return mine;
}

DataParallelOptions options_of(int replicas, UnusedParameters unused) {
  DataParallelOptions options;
  options.replicas = replicas;
  options.unused = unused;
  return options;
}

TEST(UnusedParameters, CountAsZeroWhereOnlySomeRanksUseThem) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<BranchesImpl>();
    auto model = make_branches(net);
    DataParallel parallel(*model, group, options_of(2, UnusedParameters::kAllow));
    for (int step = 0; step < 3; ++step) {
      const StepResult result = parallel.step(step, inputs(parallel, {4, 6}));
      EXPECT_EQ(result.gradient.used, (std::vector<bool>{true, true, true}));
      EXPECT_DOUBLE_EQ(mean_gradient(result, 0), 5.0) << "a";
      EXPECT_DOUBLE_EQ(mean_gradient(result, 16), 2.0) << "b";
      EXPECT_DOUBLE_EQ(mean_gradient(result, 32), 3.0) << "c";
    }
  });
}

TEST(UnusedParameters, AreNamedWithTheirRanksInTheFirstStepWhenRefused) {
  for (const int ranks : {1, 2}) {
    with_groups(ranks, [&](comm::Group& group) {
      auto net = std::make_shared<BranchesImpl>();
      auto model = make_branches(net);
      DataParallel parallel(*model, group, options_of(2, UnusedParameters::kRefuse));
      const Error error = testing::error_of([&] { parallel.step(0, inputs(parallel, {4, 6})); });
      EXPECT_EQ(error.code(), ErrorCode::kFailed);
      EXPECT_THAT(error.message(), HasSubstr("not used in step 0: "));
      EXPECT_THAT(error.message(), HasSubstr("'b' by replica 1 on rank " + std::to_string(ranks - 1)));
      EXPECT_THAT(error.message(), HasSubstr("'c' by replica 0 on rank 0"));
      EXPECT_THAT(error.message(), Not(HasSubstr("'a'")));
      EXPECT_EQ(net->b.item<float>(), 1.0f);
    });
  }
}

TEST(UnusedParameters, AreNamedWithEveryReplicaThatLeavesThemOut) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<BranchesImpl>();
    auto model = make_branches(net);
    DataParallel parallel(*model, group, options_of(3, UnusedParameters::kRefuse));
    const Error error = testing::error_of([&] { parallel.step(0, inputs(parallel, {4, 1, 2})); });
    EXPECT_THAT(error.message(),
                HasSubstr("'c' by replica 0 on rank 0 and replica 1 on rank 0 and replica 2 on rank 1"));
    EXPECT_THAT(error.message(), Not(HasSubstr("'b'")));
  });
}

TEST(UnusedParameters, AreNoneWhenEveryReplicaUsesAllInSomeMicroBatchOrHasNoSamples) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<BranchesImpl>();
    auto model = make_branches(net);
    DataParallel parallel(*model, group, options_of(2, UnusedParameters::kRefuse));
    const std::vector<Batch> both{values({4}), values({6})};
    EXPECT_EQ(parallel.step(0, std::vector<std::vector<Batch>>{both}).count, 4);
    const std::vector<Batch> none{Batch{}, Batch{}};
    EXPECT_EQ(parallel.step(1, std::vector<std::vector<Batch>>{group.rank() == 0 ? both : none}).count, 2);
    net->c.set_requires_grad(false);
    EXPECT_EQ(parallel.step(2, inputs(parallel, {4, 3})).count, 2) << "a frozen parameter need not be used";
  });
}

TEST(UnusedParameters, HaveTheRecipesWords) {
  EXPECT_EQ(to_unused_parameters("allow"), UnusedParameters::kAllow);
  EXPECT_EQ(to_unused_parameters("refuse"), UnusedParameters::kRefuse);
  EXPECT_EQ(testing::error_of([] { to_unused_parameters("ignore"); }).code(), ErrorCode::kInvalidArgument);
}

// A parameter that is used in steps 0, 2 and 3, and starts step 1 at 1.0.
constexpr double kRate = 0.1;
constexpr double kDecay = 0.1;

struct Kind {
  std::string name;
  params::OptimizerOptions options;
  // libtorch's own, which passes over a parameter without a gradient.
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> reference;
};

std::vector<Kind> kinds() {
  params::OptimizerOptions sgd;
  sgd.weight_decay = kDecay;
  params::OptimizerOptions momentum = sgd;
  momentum.momentum = 0.9;
  params::OptimizerOptions adam = sgd;
  adam.kind = "adam";
  params::OptimizerOptions adamw = sgd;
  adamw.kind = "adamw";
  return {{"sgd", sgd,
           [](std::vector<torch::Tensor> all) {
             return std::make_unique<torch::optim::SGD>(all, torch::optim::SGDOptions(kRate).weight_decay(kDecay));
           }},
          {"momentum", momentum,
           [](std::vector<torch::Tensor> all) {
             return std::make_unique<torch::optim::SGD>(
                 all, torch::optim::SGDOptions(kRate).weight_decay(kDecay).momentum(0.9));
           }},
          {"adam", adam,
           [](std::vector<torch::Tensor> all) {
             return std::make_unique<torch::optim::Adam>(all, torch::optim::AdamOptions(kRate).weight_decay(kDecay));
           }},
          {"adamw", adamw, [](std::vector<torch::Tensor> all) {
             return std::make_unique<torch::optim::AdamW>(all, torch::optim::AdamWOptions(kRate).weight_decay(kDecay));
           }}};
}

// The value of c after each of four steps; rank 0's.
std::vector<float> train_c(int ranks, const params::OptimizerOptions& options) {
  std::vector<float> after;
  with_groups(ranks, [&](comm::Group& group) {
    auto net = std::make_shared<BranchesImpl>();
    auto model = make_branches(net);
    DataParallel parallel(*model, group, options_of(2, UnusedParameters::kAllow));
    params::Optimizer optimizer(parallel.space(), options);
    for (int step = 0; step < 4; ++step) {
      if (step == 1) net->c.data().fill_(1.0f);
      const std::vector<float> x = step == 1 ? std::vector<float>{4, 3} : std::vector<float>{6, 8};
      const StepResult result = parallel.step(step, inputs(parallel, x));
      EXPECT_EQ(result.gradient.used[2], step != 1);
      optimizer.update(result.gradient, kRate);
      if (group.rank() == 0) after.push_back(net->c.item<float>());
    }
  });
  return after;
}

TEST(UnusedParameters, StayBitwiseAsTheyAreWhereNoRankUsesThemWhateverTheOptimizer) {
  for (const Kind& kind : kinds()) {
    const std::vector<float> two = train_c(2, kind.options);
    ASSERT_EQ(two.size(), 4u);
    EXPECT_NE(two[0], 1.0f) << kind.name;
    EXPECT_EQ(two[1], 1.0f) << kind.name << ": neither decayed (0.99) nor moved by momentum";
    EXPECT_NE(two[2], two[1]) << kind.name << ": trained again when it is used";
    EXPECT_EQ(two, train_c(1, kind.options)) << kind.name << ": equal to one process";

    torch::Tensor c = torch::ones({1}).requires_grad_();
    const auto reference = kind.reference({c});
    for (int step = 0; step < 4; ++step) {
      if (step == 1) c.data().fill_(1.0f);
      c.mutable_grad() = step == 1 ? torch::Tensor() : torch::full({1}, 7.0f);
      reference->step();
      EXPECT_NEAR(two[static_cast<std::size_t>(step)], c.item<float>(), 1e-6) << kind.name << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace convoy::parallel

// Measured shares: a slow rank is measured as slow, a model is left as it was, and shares follow what was measured.
#include "convoy/train/share/measured_share.h"

#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/train/planted/slow_parts.h"
#include "tests/support/groups.h"

namespace convoy::train {
namespace {

using params::Batch;
using testing::with_groups;

struct NormedImpl : torch::nn::Module {
  NormedImpl() {
    first = register_module("first", torch::nn::Linear(6, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
    last = register_module("last", torch::nn::Linear(8, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(dropout(torch::relu(norm(first(x))))); }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
};

Batch batch() { return {torch::randn({4, 6}), torch::tensor({0, 1, 2, 0})}; }

std::string digest(params::Model& model) {
  Hasher hasher;
  for (const auto& tensors : {model.parameters(), model.buffers()}) {
    for (const params::NamedTensor& named : tensors) hasher.update(named.tensor.data_ptr(), named.tensor.nbytes());
  }
  return hasher.hex();
}

TEST(TimeMicroBatch, LeavesModelAndGeneratorAsTheyWere) {
  with_groups(1, [](comm::Group& group) {
    const auto model = params::make_classifier(std::make_shared<NormedImpl>());
    const Batch input = batch();
    const std::string before = digest(*model);
    torch::manual_seed(7);
    const torch::Tensor expected = torch::rand({3});
    torch::manual_seed(7);
    EXPECT_GT(time_micro_batch(*model, input, {1, 0, 0, 0}, group), Duration(0));
    EXPECT_TRUE(torch::equal(torch::rand({3}), expected)) << "the default generator goes on where it was";
    EXPECT_EQ(digest(*model), before);
    for (const params::NamedTensor& parameter : model->parameters()) {
      EXPECT_FALSE(parameter.tensor.grad().defined()) << parameter.name;
    }
    model->forward(input);
    EXPECT_NE(digest(*model), before) << "a pass changes buffers, or this test shows nothing";
  });
}

// A model whose forward and backward passes are counted, and the last of them.
struct CountedImpl : torch::nn::Module {
  CountedImpl() { w = register_parameter("w", torch::ones({2})); }
  torch::Tensor w;
  int passes = 0;
};

TEST(TimeMicroBatch, RunsAsLongAsTheSlowestRank) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<CountedImpl>();
    const auto model = params::make_model(net, [&](CountedImpl& module, const Batch& input) {
      ++module.passes;
      system_clock().sleep_for(std::chrono::milliseconds(group.rank() == 0 ? 2 : 40));
      params::Loss loss;
      loss.sum = (module.w * input.input.sum()).sum();
      loss.count = 1;
      return loss;
    });
    const Duration took = time_micro_batch(*model, batch(), {1, 0, 0, 0}, group);
    // Sleeps are never too short: five of 40 ms on rank 1, meanwhile more than seven passes on rank 0.
    EXPECT_GE(took, std::chrono::milliseconds(group.rank() == 0 ? 2 : 40));
    if (group.rank() == 1) {
      EXPECT_GE(net->passes, 7);
    }
    const double others = comm::all_reduce_number(group, net->passes, ReduceOp::kMax);
    if (group.rank() == 1) {
      EXPECT_GT(others, net->passes);
    }
  });
}

TEST(MeasureShares, GivesEveryRankTheSameSharesByWhatAllMeasured) {
  with_groups(3, [](comm::Group& group) {
    auto inner = params::make_classifier(std::make_shared<NormedImpl>());
    SlowModel model(std::move(inner), std::chrono::milliseconds(group.rank() == 1 ? 30 : 10));
    const MeasuredShares shares = measure_shares(model, batch(), {1, 0, 0, 0}, 14, group);
    ASSERT_EQ(shares.micro_batch_ms.size(), 3u);
    std::vector<double> speeds;
    for (int rank = 0; rank < 3; ++rank) {
      const double ms = shares.micro_batch_ms[static_cast<std::size_t>(rank)];
      EXPECT_GE(ms, rank == 1 ? 30.0 : 10.0);
      EXPECT_EQ(comm::all_reduce_number(group, ms, ReduceOp::kMax), ms) << "of rank " << rank;
      speeds.push_back(1.0 / ms);
    }
    EXPECT_EQ(shares.owners, spec::deal_replicas_by_speed(14, speeds));
    const Error error = testing::error_of([&] { measure_shares(model, batch(), {1, 0, 0, 0}, 2, group); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  });
}

TEST(TimeMicroBatch, RunsEveryBackwardPassOfALoss) {
  with_groups(1, [](comm::Group& group) {
    int first = 0;
    int second = 0;
    auto net = std::make_shared<CountedImpl>();
    const auto model = params::make_model(net, [&](CountedImpl& module, const Batch&) {
      params::Loss loss;
      const torch::Tensor both = module.w * 2;
      both.register_hook([&](const torch::Tensor& gradient) { ++(gradient[0].item<float>() > 1 ? second : first); });
      loss.sum = both.sum();
      loss.further_sums = {(both * 3).sum()};
      loss.count = 1;
      return loss;
    });
    time_micro_batch(*model, batch(), {1, 0, 0, 0}, group);
    EXPECT_GE(first, 7);
    EXPECT_EQ(second, first);
  });
}

}  // namespace
}  // namespace convoy::train

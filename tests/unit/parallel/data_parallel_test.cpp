// Data parallel in small numbers: weights, accumulation, unused parameters, buffers, failures.
#include "convoy/parallel/data/data_parallel.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <mutex>

#include "convoy/base/error.h"
#include "tests/support/groups.h"
#include "tests/unit/parallel/small_models.h"

namespace convoy::parallel {
namespace {

using params::Batch;
using params::GradientSums;
using params::Loss;
using testing::with_groups;

// The gradient per counted sample, as an optimizer sees it.
double mean_gradient(const StepResult& result, std::int64_t element = 0) {
  return result.gradient.flat[element].item<double>() / result.gradient.scale.count;
}

TEST(DataParallel, WeightsByWhatCountedNotByRank) {
  with_groups(2, [](comm::Group& group) {
    auto line = std::make_shared<LineImpl>();
    auto model = make_line(line);
    DataParallelOptions options;
    options.replicas = 2;
    DataParallel parallel(*model, group, options);
    const std::vector<std::vector<Batch>> mine{{group.rank() == 0 ? values({1, 2, 3}) : values({5})}};
    const StepResult result = parallel.step(0, mine);
    EXPECT_EQ(result.count, 4);
    EXPECT_DOUBLE_EQ(mean_gradient(result), 2.75) << "not the mean of means, 3.5";
    EXPECT_DOUBLE_EQ(result.gradient.flat[0].item<double>(), 11.0);
    EXPECT_DOUBLE_EQ(result.gradient_norm, 2.75);
  });
}

TEST(DataParallel, WeightsMicroBatchesByWhatTheyCount) {
  // (loss sum, counted): rank 0 (2, 1), (6, 3); rank 1 (12, 4), and a micro-batch in which nothing counts.
  with_groups(2, [](comm::Group& group) {
    auto line = std::make_shared<LineImpl>();
    line->w.data().fill_(1.0f);
    auto model = make_line(line);
    DataParallelOptions options;
    options.replicas = 2;
    DataParallel parallel(*model, group, options);
    const auto counted = [](float sum, std::int64_t count) {
      return Batch{torch::tensor({sum}), torch::tensor(count)};
    };
    const std::vector<std::vector<Batch>> mine{
        group.rank() == 0 ? std::vector<Batch>{counted(2, 1), counted(6, 3)}
                          : std::vector<Batch>{counted(12, 4), Batch{torch::zeros({0}), torch::tensor(std::int64_t{0})}}};
    const StepResult result = parallel.step(0, mine);
    EXPECT_EQ(result.count, 8);
    EXPECT_DOUBLE_EQ(result.loss, 2.5);
    EXPECT_DOUBLE_EQ(mean_gradient(result), 2.5);
  });
}

TEST(DataParallel, TakesAnEmptyReplica) {
  with_groups(2, [](comm::Group& group) {
    auto line = std::make_shared<LineImpl>();
    auto model = make_line(line);
    DataParallelOptions options;
    options.replicas = 3;
    DataParallel parallel(*model, group, options);
    std::vector<std::vector<Batch>> mine;
    for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
      mine.push_back({replica == 1 ? Batch{} : values({static_cast<float>(replica + 1)})});
    }
    const StepResult result = parallel.step(0, mine);
    EXPECT_EQ(result.count, 2);
    EXPECT_DOUBLE_EQ(mean_gradient(result), 2.0);
    EXPECT_TRUE(result.gradient.used[0]);
  });
}

TEST(DataParallel, SaysThatNothingCounted) {
  with_groups(2, [](comm::Group& group) {
    auto line = std::make_shared<LineImpl>();
    auto model = make_line(line);
    DataParallelOptions options;
    options.replicas = 2;
    DataParallel parallel(*model, group, options);
    const Error error = testing::error_of([&] { parallel.step(7, std::vector<std::vector<Batch>>{{Batch{}}}); });
    EXPECT_EQ(error.code(), ErrorCode::kFailed);
    EXPECT_NE(error.message().find("step 7"), std::string::npos) << error.message();
  });
}

TEST(DataParallel, GivesEachReplicaItsOwnBuffersAndMergesThemAsDeclared) {
  for (const int ranks : {1, 2, 3}) {
    with_groups(ranks, [&](comm::Group& group) {
      auto net = std::make_shared<BufferedImpl>(1.0f);
      auto model = make_buffered(net);
      DataParallelOptions options;
      options.replicas = 3;
      DataParallel parallel(*model, group, options);
      std::vector<std::vector<Batch>> mine;
      for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
        mine.push_back({values({static_cast<float>(replica)})});
      }
      parallel.step(0, mine);
      parallel.step(1, mine);
      for (const spec::StateEntry& entry : parallel.state()) {
        if (entry.name.rfind("replica.", 0) != 0 || entry.dtype != DType::kFloat32) continue;
        const int replica = entry.name[8] - '0';
        EXPECT_EQ(*reinterpret_cast<const float*>(entry.data), 1.0f + 2.0f * static_cast<float>(replica)) << entry.name;
      }
      parallel.load_merged_buffers();
      EXPECT_EQ(net->seen.item<float>(), 3.0f) << "the mean of 1, 3, 5";
      EXPECT_EQ(net->steps.item<std::int64_t>(), 2) << "counters are taken from replica 0";
    });
  }
}

TEST(DataParallel, RefusesDifferentModelsOnRanks) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<BufferedImpl>(1.0f);
    auto other = std::make_shared<BranchesImpl>();
    auto model = group.rank() == 0 ? make_buffered(net) : make_branches(other);
    DataParallelOptions options;
    options.replicas = 2;
    const Error error = testing::error_of([&] { DataParallel parallel(*model, group, options); });
    EXPECT_EQ(error.code(), ErrorCode::kDesync) << "on every rank";
  });
}

TEST(DataParallel, RefusesMoreRanksThanReplicas) {
  const auto thrown = testing::collect_ranks(1, [](int) {
    with_groups(3, [](comm::Group& group) {
      auto line = std::make_shared<LineImpl>();
      auto model = make_line(line);
      DataParallelOptions options;
      options.replicas = 2;
      DataParallel parallel(*model, group, options);
    });
  });
  EXPECT_EQ(testing::error_in(thrown[0]).code(), ErrorCode::kInvalidArgument);
}

TEST(DataParallel, NamesReplicaAndRankOfALossThatIsNotFinite) {
  std::mutex mutex;
  std::vector<std::string> messages;
  with_groups(3, [&](comm::Group& group) {
    auto line = std::make_shared<LineImpl>();
    auto model = make_line(line);
    DataParallelOptions options;
    options.replicas = 4;
    DataParallel parallel(*model, group, options);
    std::vector<std::vector<Batch>> mine;
    for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
      mine.push_back({values({replica == 3 ? std::nanf("") : 1.0f})});
    }
    const Error error = testing::error_of([&] { parallel.step(5, mine); });
    EXPECT_EQ(error.code(), ErrorCode::kFailed);
    const std::lock_guard lock(mutex);
    messages.push_back(error.message());
  });
  ASSERT_EQ(messages.size(), 3u);
  for (const std::string& message : messages) {
    EXPECT_NE(message.find("step 5: replica 3 on rank 2"), std::string::npos) << message;
  }
}

TEST(DataParallel, NamesParameterAndRankOfAGradientThatIsNotFinite) {
  with_groups(2, [](comm::Group& group) {
    auto net = std::make_shared<BranchesImpl>();
    // sqrt at 0: the loss is finite, its gradient is not
    auto model = params::make_model(net, [](BranchesImpl& module, const Batch& batch) {
      Loss loss;
      loss.sum = (module.a * batch.input).sum() + torch::sqrt(module.b * batch.input).sum();
      loss.count = 1;
      return loss;
    });
    DataParallelOptions options;
    options.replicas = 2;
    DataParallel parallel(*model, group, options);
    const auto step = [&](std::int64_t number, float rank_one) {
      return parallel.step(number, std::vector<std::vector<Batch>>{{values({group.rank() == 0 ? 1.0f : rank_one})}});
    };
    step(0, 2.0f);
    net->b.data().zero_();
    const Error error = testing::error_of([&] { step(1, 0.0f); });
    EXPECT_EQ(error.code(), ErrorCode::kFailed);
    EXPECT_NE(error.message().find("'b'"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("step 1"), std::string::npos) << error.message();
  });
}

TEST(PartialSums, AddAlongTheCanonicalTree) {
  EXPECT_EQ(additions_by_replica(8, {0, 8}), (std::vector<int>{0, 1, 0, 2, 0, 1, 0, 3}));
  EXPECT_EQ(additions_by_replica(8, {0, 3}), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(additions_by_replica(8, {3, 6}), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(additions_by_replica(3, {0, 3}), (std::vector<int>{0, 1, 1}));
}

TEST(Buckets, CloseTheFirstEarlyAndKeepTheOrder) {
  const std::vector<Bucket> buckets = make_buckets({3, 2, 1, 0}, {100, 10, 10, 30}, 100);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[0].slots, std::vector<std::size_t>{3});
  EXPECT_EQ(buckets[1].slots, (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(buckets[1].bytes, 120);
}

}  // namespace
}  // namespace convoy::parallel

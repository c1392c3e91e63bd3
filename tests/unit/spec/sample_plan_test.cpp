// Which sample goes where: each once an epoch, a new order each epoch, and nothing that depends on the ranks.
#include "convoy/spec/sample_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::spec {
namespace {

using Samples = std::vector<std::int64_t>;

// Built field by field: clang 14 and later readers both see which number is which.
SamplePlanOptions plan_of(std::int64_t samples, std::int64_t batch, int replicas = 1, int accumulation = 1,
                          bool drop_last = false, std::uint64_t seed = 1) {
  SamplePlanOptions options;
  options.samples = samples;
  options.global_batch = batch;
  options.replicas = replicas;
  options.accumulation = accumulation;
  options.drop_last = drop_last;
  options.seed = seed;
  return options;
}

Samples epoch_samples(const SamplePlan& plan, std::int64_t epoch) {
  Samples all;
  const std::int64_t first = epoch * plan.steps_per_epoch();
  for (std::int64_t step = first; step < first + plan.steps_per_epoch(); ++step) {
    const Samples part = plan.step_samples(step);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Samples sorted(Samples samples) {
  std::sort(samples.begin(), samples.end());
  return samples;
}

Samples counted(std::int64_t samples) {
  Samples all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// What `ranks` ranks see in steps [first, last), rank after rank.
std::vector<Samples> by_rank(const SamplePlan& plan, int ranks, std::int64_t first, std::int64_t last) {
  std::vector<Samples> seen;
  for (const ReplicaRange share : deal_replicas(plan.options().replicas, ranks)) {
    seen.emplace_back();
    for (std::int64_t step = first; step < last; ++step) {
      for (int replica = share.begin; replica < share.end; ++replica) {
        const Samples mine = plan.replica_samples(step, replica);
        seen.back().insert(seen.back().end(), mine.begin(), mine.end());
      }
    }
  }
  return seen;
}

SamplePlanOptions random_options() {
  const std::int64_t samples = *rc::gen::inRange(1, 300);
  const std::int64_t batch = *rc::gen::inRange(1, 70);
  return plan_of(samples, batch, *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 5),
                 batch <= samples && *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<std::uint64_t>());
}

RC_GTEST_PROP(SamplePlan, TakesEachSampleOnceAnEpoch, ()) {
  SamplePlanOptions options = random_options();
  options.drop_last = false;
  const SamplePlan plan(options);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    RC_ASSERT(sorted(epoch_samples(plan, epoch)) == counted(options.samples));
  }
}

RC_GTEST_PROP(SamplePlan, DropsNothingButTheShortLastBatch, ()) {
  SamplePlanOptions options = random_options();
  options.global_batch = std::min(options.global_batch, options.samples);
  options.drop_last = true;
  const SamplePlan plan(options);
  const Samples taken = sorted(epoch_samples(plan, 1));
  RC_ASSERT(static_cast<std::int64_t>(taken.size()) == options.samples / options.global_batch * options.global_batch);
  RC_ASSERT(std::adjacent_find(taken.begin(), taken.end()) == taken.end());
  RC_ASSERT(taken.front() >= 0);
  RC_ASSERT(taken.back() < options.samples);
}

RC_GTEST_PROP(SamplePlan, CutsAStepIntoReplicasAndMicroBatches, ()) {
  const SamplePlan plan(random_options());
  const std::int64_t step = *rc::gen::inRange(0, 20);
  Samples joined;
  std::size_t fewest = 1000;
  std::size_t most = 0;
  for (int replica = 0; replica < plan.options().replicas; ++replica) {
    const Samples mine = plan.replica_samples(step, replica);
    Samples pieces;
    const auto parts = plan.micro_batches(step, replica);
    RC_ASSERT(static_cast<int>(parts.size()) == plan.options().accumulation);
    for (const Samples& part : parts) {
      RC_ASSERT(part.size() * parts.size() <= mine.size() + parts.size() - 1);  // none exceeds the rounded-up mean
      pieces.insert(pieces.end(), part.begin(), part.end());
    }
    RC_ASSERT(pieces == mine);
    joined.insert(joined.end(), mine.begin(), mine.end());
    fewest = std::min(fewest, mine.size());
    most = std::max(most, mine.size());
  }
  RC_ASSERT(joined == plan.step_samples(step));
  RC_ASSERT(most - fewest <= 1u);
}

RC_GTEST_PROP(SamplePlan, IsPureInTheStep, ()) {
  const SamplePlanOptions options = random_options();
  const SamplePlan sequential(options);
  const SamplePlan random(options);
  const std::int64_t steps = 4 * sequential.steps_per_epoch();
  std::vector<Samples> expected;
  for (std::int64_t step = 0; step < steps; ++step) expected.push_back(sequential.step_samples(step));
  for (int i = 0; i < 20; ++i) {
    const auto step = *rc::gen::inRange<std::int64_t>(0, steps);
    RC_ASSERT(random.step_samples(step) == expected[static_cast<std::size_t>(step)]);
    RC_ASSERT(SamplePlan(options).step_samples(step) == expected[static_cast<std::size_t>(step)]);
  }
}

RC_GTEST_PROP(SamplePlan, CountsTheSamplesBeforeAStep, ()) {
  const SamplePlan plan(random_options());
  std::int64_t before = 0;
  for (std::int64_t step = 0; step < 3 * plan.steps_per_epoch(); ++step) {
    RC_ASSERT(plan.samples_before(step) == before);
    RC_ASSERT(plan.epoch_of(step) == step / plan.steps_per_epoch());
    before += static_cast<std::int64_t>(plan.step_samples(step).size());
  }
}

TEST(SamplePlan, GivesTheShortLastBatchItsRest) {
  const SamplePlan plan(plan_of(10, 4));
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.step_samples(1).size(), 4u);
  EXPECT_EQ(plan.step_samples(2).size(), 2u);
  EXPECT_EQ(plan.step_samples(3).size(), 4u);
  const SamplePlan dropping(plan_of(10, 4, 1, 1, true));
  EXPECT_EQ(dropping.steps_per_epoch(), 2);
  EXPECT_EQ(SamplePlan(plan_of(12, 4)).steps_per_epoch(), 3);
}

TEST(SamplePlan, LeavesReplicasEmptyWhereTheLastBatchIsTooShort) {
  const SamplePlan plan(plan_of(9, 8, 4));
  EXPECT_EQ(plan.replica_samples(1, 0).size(), 1u);
  for (int replica = 1; replica < 4; ++replica) EXPECT_TRUE(plan.replica_samples(1, replica).empty());
  for (const Samples& part : plan.micro_batches(1, 3)) EXPECT_TRUE(part.empty());
}

// The mean position of a sample over many seeds is the middle: an order that favours a place shows here.
TEST(SamplePlan, FavoursNoSample) {
  double sum = 0.0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Samples order = SamplePlan(plan_of(21, 21, 1, 1, false, seed)).step_samples(0);
    sum += static_cast<double>(std::find(order.begin(), order.end(), 0) - order.begin());
  }
  EXPECT_NEAR(sum / 400, 10.0, 1.2);  // four standard errors
}

TEST(SamplePlan, DependsOnTheSeed) {
  EXPECT_NE(SamplePlan(plan_of(50, 50, 1, 1, false, 1)).step_samples(0),
            SamplePlan(plan_of(50, 50, 1, 1, false, 2)).step_samples(0));
}

TEST(SamplePlan, CanBeReadByManyThreads) {
  const SamplePlan plan(plan_of(97, 10, 2));
  const SamplePlan expected(plan_of(97, 10, 2));
  std::vector<Samples> seen(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < seen.size(); ++thread) {
      threads.emplace_back([&plan, &seen, thread] {
        for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
          const Samples part = epoch_samples(plan, (epoch + static_cast<std::int64_t>(thread)) % 6);
          seen[thread].insert(seen[thread].end(), part.begin(), part.end());
        }
      });
    }
  }
  for (std::size_t thread = 0; thread < seen.size(); ++thread) {
    Samples wanted;
    for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
      const Samples part = epoch_samples(expected, (epoch + static_cast<std::int64_t>(thread)) % 6);
      wanted.insert(wanted.end(), part.begin(), part.end());
    }
    EXPECT_EQ(seen[thread], wanted);
  }
}

TEST(SamplePlan, RefusesWhatLeavesNothingToDo) {
  EXPECT_THROW(SamplePlan(plan_of(0, 1)), Error);
  EXPECT_THROW(SamplePlan(plan_of(1, 0)), Error);
  EXPECT_THROW(SamplePlan(plan_of(1, 1, 0)), Error);
  EXPECT_THROW(SamplePlan(plan_of(1, 1, 1, 0)), Error);
  EXPECT_THROW(SamplePlan(plan_of(3, 4, 1, 1, true)), Error);
  const SamplePlan plan(plan_of(3, 4, 2));
  EXPECT_THROW(plan.step_samples(-1), Error);
  EXPECT_THROW(plan.replica_samples(0, 2), Error);
  EXPECT_THROW(plan.replica_samples(0, -1), Error);
}

// Known failures of samplers elsewhere, as small cases.

TEST(SamplePlan, GivesANewOrderEachEpochOverTwoRanks) {
  const SamplePlan plan(plan_of(8, 4, 2));
  std::vector<Samples> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    Samples all;
    for (const Samples& seen : by_rank(plan, 2, 2 * epoch, 2 * epoch + 2))
      all.insert(all.end(), seen.begin(), seen.end());
    EXPECT_EQ(sorted(all), counted(8)) << "epoch " << epoch;
    orders.push_back(epoch_samples(plan, epoch));
    EXPECT_EQ(epoch_samples(SamplePlan(plan_of(8, 4, 2)), epoch), orders.back()) << "the same seed gives the same run";
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_NE(orders[0], orders[2]);
}

TEST(SamplePlan, GoesOnInsideALaterEpochAsIfNothingHadHappened) {
  const SamplePlanOptions options = plan_of(12, 4, 2);
  const SamplePlan uninterrupted(options);
  const std::int64_t stopped = uninterrupted.steps_per_epoch() + 1;  // one batch into epoch 1
  const SamplePlan resumed(options);
  const std::int64_t end = 3 * uninterrupted.steps_per_epoch();
  const auto wanted = by_rank(uninterrupted, 2, stopped, end);
  EXPECT_EQ(by_rank(resumed, 2, stopped, end), wanted);
  EXPECT_NE(by_rank(resumed, 2, 1, 1 + end - stopped), wanted) << "the orders of the first epochs would show";
}

TEST(SamplePlan, StartsTheNextEpochAfterAStopAtTheEndOfOne) {
  const SamplePlan plan(plan_of(7, 3, 2));
  ASSERT_EQ(plan.steps_per_epoch(), 3);
  std::vector<int> times(7, 0);
  int steps = 0;
  for (std::int64_t step = 3; plan.epoch_of(step) < 3; ++step, ++steps) {
    for (const std::int64_t sample : plan.step_samples(step)) ++times[static_cast<std::size_t>(sample)];
  }
  EXPECT_EQ(steps, 6);
  for (const int count : times) EXPECT_EQ(count, 2);  // and once in the first epoch
}

// 5 micro-batches of 4 samples, 2 of them in a step: the third step has the one that is left over.
TEST(SamplePlan, MakesAStepOfTheShortLastAccumulationWindowUnlessTold) {
  SamplePlanOptions options;
  options.samples = 20;
  options.global_batch = 8;
  options.accumulation = 2;
  const SamplePlan plan(options);
  ASSERT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.step_samples(2).size(), 4u);
  EXPECT_EQ(plan.micro_batches(2, 0)[0].size() + plan.micro_batches(2, 0)[1].size(), 4u);
  options.drop_last = true;
  EXPECT_EQ(SamplePlan(options).steps_per_epoch(), 2);
}

// 36 samples for 5 replicas: 36 distinct samples in every step, none lost to a division.
TEST(SamplePlan, KeepsTheGlobalBatchWhenReplicasDoNotDivideIt) {
  SamplePlanOptions options;
  options.samples = 180;
  options.global_batch = 36;
  options.replicas = 5;
  const SamplePlan plan(options);
  ASSERT_EQ(plan.steps_per_epoch(), 5);
  std::vector<std::size_t> sizes;
  for (int replica = 0; replica < 5; ++replica) sizes.push_back(plan.replica_samples(3, replica).size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 7, 7, 7, 7}));
}

TEST(EvaluationShare, CountsEachSampleOnceOnAnyNumberOfRanks) {
  const std::vector<int> right = {1, 1, 1, 1, 0};
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (std::int64_t batch = 1; batch <= 6; ++batch) {
      const std::int64_t batches = evaluation_batches(5, batch);
      int correct = 0;
      int samples = 0;
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const BatchRange share = evaluation_share(batches, ranks, rank);
        EXPECT_EQ(share.begin, next);
        next = share.end;
        for (std::int64_t sample = share.begin * batch; sample < std::min<std::int64_t>(5, share.end * batch);
             ++sample) {
          correct += right[static_cast<std::size_t>(sample)];
          ++samples;
        }
      }
      EXPECT_EQ(next, batches);
      EXPECT_EQ(samples, 5);
      EXPECT_EQ(static_cast<double>(correct) / samples, 0.8);
    }
  }
}

TEST(EvaluationShare, RefusesARankThatIsNotThere) {
  EXPECT_THROW(evaluation_share(3, 2, 2), Error);
  EXPECT_THROW(evaluation_share(3, 0, 0), Error);
  EXPECT_THROW(evaluation_batches(3, 0), Error);
  EXPECT_EQ(evaluation_batches(0, 4), 0);
}

}  // namespace
}  // namespace convoy::spec

// The loader: hands out what the plan says, the same bytes whatever the split over ranks, and always ends.
#include "convoy/records/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>
#include <thread>

#include "convoy/observe/memory_meter.h"
#include "convoy/records/images/image_dataset.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Duration kLimit = std::chrono::seconds(20);

// A training part of 23 images out of 40, a plan for 4 replicas with 2 micro-batches, 4 steps an epoch (the last
// short).
struct Fixture {
  ImageSet images = make_images(40, 6, 5);
  std::vector<std::int64_t> training;
  std::optional<Normalisation> normalisation;
  spec::SamplePlanOptions plan_options{23, 7, 4, 2, false, 11};
  AugmentOptions augment{2, true};
  std::shared_ptr<ImageDataset> dataset;

  Fixture() {
    for (std::int64_t i = 0; i < 23; ++i) training.push_back(39 - i * 3 / 2);
    normalisation = measure_normalisation(images, training);
    dataset = std::make_shared<ImageDataset>(images, std::vector{*normalisation}, augment, 7);
  }
  BatchSource source() const { return {*dataset, training}; }
  LoaderOptions options(spec::ReplicaRange replicas, std::int64_t first, std::int64_t end) const {
    return {replicas, first, end, 2, {}, nullptr};
  }
};

// What one replica got in one step: the micro-batches joined, cut by '/', then pixels and labels.
struct Part {
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  friend bool operator==(const Part&, const Part&) = default;
};
using Parts = std::map<std::pair<std::int64_t, int>, Part>;

void load(const Fixture& fixture, const LoaderOptions& options, Parts& parts) {
  const spec::SamplePlan plan(fixture.plan_options);
  Loader loader(fixture.source(), plan, options);
  while (!loader.done()) {
    const StepBatch& step = loader.next(kLimit);
    EXPECT_EQ(step.epoch, plan.epoch_of(step.step));
    for (const ReplicaBatches& replica : step.replicas) {
      Part part;
      for (const Batch& batch : replica.micro_batches) {
        EXPECT_EQ(batch.values.size(), static_cast<std::size_t>(batch.count() * 30));
        EXPECT_EQ(batch.labels.size(), static_cast<std::size_t>(batch.count()));
        part.ids.push_back(batch.sample_ids);
        part.pixels.insert(part.pixels.end(), batch.values.begin(), batch.values.end());
        part.labels.insert(part.labels.end(), batch.labels.begin(), batch.labels.end());
      }
      const bool fresh = parts.emplace(std::pair(step.step, replica.replica), std::move(part)).second;
      EXPECT_TRUE(fresh) << "step " << step.step << ", replica " << replica.replica << " came twice";
    }
  }
}

Parts load_on(const Fixture& fixture, int ranks, std::int64_t first, std::int64_t end) {
  Parts parts;
  for (const spec::ReplicaRange& range : spec::deal_replicas(fixture.plan_options.replicas, ranks)) {
    load(fixture, fixture.options(range, first, end), parts);
  }
  return parts;
}

TEST(Loader, HandsOutWhatThePlanSaysOnAnyNumberOfRanks) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  ASSERT_EQ(plan.steps_per_epoch(), 4);
  const Parts alone = load_on(fixture, 1, 0, 8);
  ASSERT_EQ(alone.size(), 8u * 4u);
  for (const auto& [key, part] : alone) {
    EXPECT_EQ(part.ids, plan.micro_batches(key.first, key.second));
    std::size_t at = 0;
    for (const auto& ids : part.ids) {
      for (const std::int64_t id : ids) {
        const std::int64_t image = fixture.training[static_cast<std::size_t>(id)];
        EXPECT_EQ(part.labels[at++], fixture.images.labels[static_cast<std::size_t>(image)]);
      }
    }
  }
  for (const int ranks : {2, 3, 4}) EXPECT_EQ(load_on(fixture, ranks, 0, 8), alone) << ranks << " ranks";
}

TEST(Loader, CountsWhatItsBatchesTake) {
  const auto counted = [] {
    return observe::process_memory().current()[static_cast<std::size_t>(observe::MemoryCategory::kBatch)];
  };
  const std::int64_t before = counted();
  {
    const Fixture fixture;
    const spec::SamplePlan plan(fixture.plan_options);
    Loader loader(fixture.source(), plan, fixture.options({0, 4}, 0, 1));
    StepBatch& step = loader.next(kLimit);
    std::int64_t bytes = 0;
    for (const ReplicaBatches& replica : step.replicas) {
      for (const Batch& batch : replica.micro_batches) bytes += batch.memory_bytes();
    }
    EXPECT_GE(bytes, 7 * (30 * 4 + 8 + 8)) << "pixels, classes and numbers of 7 samples";
    EXPECT_EQ(counted() - before, bytes);
  }
  EXPECT_EQ(counted(), before);
}

TEST(Loader, UsesEachSampleOncePerEpochInANewOrder) {
  const Fixture fixture;
  const Parts parts = load_on(fixture, 3, 0, 8);
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (const auto& [key, part] : parts) {
    for (const auto& ids : part.ids) {
      auto& epoch = epochs[static_cast<std::size_t>(key.first / 4)];
      epoch.insert(epoch.end(), ids.begin(), ids.end());
    }
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    std::vector<std::int64_t> all(23);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(epoch, all);
  }
}

// 8 samples on 2 ranks, 3 epochs of 2 steps. The loader has the plan itself, no copy with an epoch of its own.
TEST(Loader, HasANewOrderInEachEpochAndTheSameForTheSameSeed) {
  Fixture fixture;
  fixture.training.resize(8);
  fixture.plan_options = {8, 4, 2, 1, false, 11};
  const auto orders = [&] {
    std::vector<std::vector<std::int64_t>> epochs(3);
    for (const auto& [key, part] : load_on(fixture, 2, 0, 6)) {
      auto& epoch = epochs[static_cast<std::size_t>(key.first / 2)];
      for (const auto& ids : part.ids) epoch.insert(epoch.end(), ids.begin(), ids.end());
    }
    return epochs;
  };
  std::vector<std::vector<std::int64_t>> epochs = orders();
  EXPECT_EQ(epochs, orders()) << "the same seed";
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(epochs[0], epochs[2]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

// 12 samples on 2 ranks, 2 a rank and step; stopped in epoch 1 after one batch.
TEST(Loader, GoesOnInsideALaterEpochWithTheOrderOfThatEpoch) {
  Fixture fixture;
  fixture.training.resize(12);
  fixture.plan_options = {12, 4, 2, 1, false, 11};
  Parts whole = load_on(fixture, 2, 0, 9);
  const Parts first_epoch = load_on(fixture, 2, 1, 3);
  std::erase_if(whole, [](const auto& entry) { return entry.first.first < 4; });
  EXPECT_EQ(load_on(fixture, 2, 4, 9), whole) << "this epoch and the next";
  for (const int replica : {0, 1}) {
    EXPECT_NE(whole.at({4, replica}).ids, first_epoch.at({1, replica}).ids) << "the first epoch's order would show";
  }
}

TEST(Loader, GoesOnInTheMiddleOfALaterEpochOnOtherRanks) {
  const Fixture fixture;
  Parts whole = load_on(fixture, 2, 0, 12);
  std::erase_if(whole, [](const auto& entry) { return entry.first.first < 5; });
  EXPECT_EQ(load_on(fixture, 3, 5, 12), whole);
}

TEST(Loader, PreparesImagesAsTheSampleDemands) {
  const Fixture fixture;
  const Parts parts = load_on(fixture, 2, 0, 8);
  int varied = 0;
  for (const auto& [key, part] : parts) {
    std::size_t at = 0;
    for (const auto& ids : part.ids) {
      for (const std::int64_t id : ids) {
        const Variation variation = draw_variation(fixture.augment, 11, key.first / 4, id);
        varied += variation == Variation{} ? 0 : 1;
        std::vector<float> expected(30);
        prepare_image(fixture.images.image(fixture.training[static_cast<std::size_t>(id)]), 6, 5, variation,
                      *fixture.normalisation, expected);
        const std::vector<float> got(part.pixels.begin() + static_cast<std::ptrdiff_t>(at),
                                     part.pixels.begin() + static_cast<std::ptrdiff_t>(at + 30));
        EXPECT_EQ(got, expected);
        at += 30;
      }
    }
  }
  EXPECT_GT(varied, 30);
}

TEST(Loader, GivesAnEmptyPartToAReplicaWithoutSamples) {
  Fixture fixture;
  fixture.plan_options.global_batch = 3;  // 4 replicas: the last has none
  const spec::SamplePlan plan(fixture.plan_options);
  Loader loader(fixture.source(), plan, fixture.options({3, 4}, 0, 2));
  const StepBatch& step = loader.next(kLimit);
  ASSERT_EQ(step.replicas.size(), 1u);
  ASSERT_EQ(step.replicas[0].micro_batches.size(), 2u);
  for (const Batch& batch : step.replicas[0].micro_batches) {
    EXPECT_EQ(batch.count(), 0);
    EXPECT_TRUE(batch.values.empty());
  }
}

TEST(Loader, UsesItsBuffersAgain) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  Loader loader(fixture.source(), plan, fixture.options({0, 4}, 0, 40));
  std::map<const StepBatch*, int> seen;
  while (!loader.done()) ++seen[&loader.next(kLimit)];
  EXPECT_LE(seen.size(), 3u) << "prefetch 2, and the one in use";
}

TEST(Loader, PreparesAheadAndMeasures) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  Loader loader(fixture.source(), plan, fixture.options({0, 4}, 0, 40));
  loader.next(kLimit);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // by then the next steps are there
  const StepBatch& step = loader.next(kLimit);
  EXPECT_GT(step.prepare, Duration(0));
  EXPECT_LT(step.waited, std::chrono::milliseconds(250));
}

TEST(Loader, PassesOnWhatItsThreadFailedWithAndKeepsTheStepsBefore) {
  Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  // The list is borrowed, so a fault can be planted in a sample that belongs to a step far ahead of the thread.
  const std::int64_t victim = plan.replica_samples(3, 1).at(0);
  Loader loader(fixture.source(), plan, fixture.options({0, 4}, 0, 8));
  loader.next(kLimit);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // The thread holds steps 1 and 2 ready and waits for a buffer.
  fixture.training[static_cast<std::size_t>(victim)] = 1000;
  EXPECT_EQ(loader.next(kLimit).step, 1);
  EXPECT_EQ(loader.next(kLimit).step, 2);
  const std::string expected =
      "InvalidArgument: sample " + std::to_string(victim) + " is number 1000 of the data, but there are 40";
  EXPECT_THAT(error_of([&] { loader.next(kLimit); }), StartsWith(expected));
  EXPECT_THAT(error_of([&] { loader.next(kLimit); }), StartsWith(expected)) << "again, and no hang";
}

// Images so large that a step takes long to prepare.
struct SlowFixture {
  ImageDataset dataset{make_images(2, 400, 400), {Normalisation(0.0, 1.0)}, {5, true}, 7};
  std::vector<std::int64_t> training;
  // Many micro-batches: making room for one cannot be interrupted, and takes long where memory is watched.
  spec::SamplePlan plan{spec::SamplePlanOptions{300, 300, 1, 100, false, 1}};
  SlowFixture() {
    for (int i = 0; i < 300; ++i) training.push_back(i % 2);
  }
};

TEST(Loader, NamesTheStepThatIsNotReadyInTime) {
  const SlowFixture slow;
  Loader loader({slow.dataset, slow.training}, slow.plan, {{0, 1}, 0, 3, 1, {}, nullptr});
  EXPECT_THAT(error_of([&] { loader.next(std::chrono::milliseconds(1)); }),
              StartsWith("Timeout: the batches of step 0 were not ready after"));
}

TEST(Loader, StopsInTheMiddleOfAStep) {
  const SlowFixture slow;
  TimePoint stopped;
  {
    const Loader loader({slow.dataset, slow.training}, slow.plan, {{0, 1}, 0, 3, 1, {}, nullptr});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stopped = system_clock().now();
  }
  EXPECT_LT(system_clock().now() - stopped, std::chrono::seconds(5));
}

TEST(Loader, StopsWhileItWaitsForABuffer) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  const TimePoint began = system_clock().now();
  for (int i = 0; i < 50; ++i) {
    Loader loader(fixture.source(), plan, fixture.options({0, 4}, 0, 1000));
    loader.next(kLimit);
    if (i % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(system_clock().now() - began, std::chrono::seconds(20));
}

TEST(Loader, RefusesWhatDoesNotFitTogether) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  const auto error = [&](const LoaderOptions& options) {
    return error_of([&] { const Loader loader(fixture.source(), plan, options); });
  };
  EXPECT_THAT(error(fixture.options({2, 5}, 0, 1)), HasSubstr("replicas [2, 5) are not among the 4"));
  EXPECT_THAT(error(fixture.options({0, 4}, 3, 2)), HasSubstr("steps [3, 2) are no range"));
  EXPECT_THAT(error({{0, 4}, 0, 1, 1, {1, 2}, nullptr}), HasSubstr("2 class weights do not fit 7 classes"));
  EXPECT_THAT(error({{0, 4}, 0, 1, 0, {}, nullptr}), HasSubstr("data.prefetch = 0"));
  Fixture shorter;
  shorter.training.pop_back();
  EXPECT_THAT(error_of([&] {
                const Loader loader(shorter.source(), plan, fixture.options({0, 4}, 0, 1));
              }),
              HasSubstr("the training part has 22 samples, but the sample plan 23"));
  Fixture outside;
  outside.training[22] = 40;
  EXPECT_THAT(error_of([&] {
                const Loader loader(outside.source(), plan, fixture.options({0, 4}, 0, 1));
              }),
              HasSubstr("names a sample that is not among the 40"));
}

TEST(Loader, SaysThatAllStepsWereHandedOut) {
  const Fixture fixture;
  const spec::SamplePlan plan(fixture.plan_options);
  Loader loader(fixture.source(), plan, fixture.options({0, 4}, 8, 8));
  EXPECT_TRUE(loader.done());
  EXPECT_THAT(error_of([&] { loader.next(kLimit); }), StartsWith("InvalidArgument: the loader has handed out all"));
}

TEST(EvaluationBatches, CoverTheListOnceWithoutPaddingOnAnyNumberOfRanks) {
  const Fixture fixture;
  const std::int64_t batches = spec::evaluation_batches(23, 5);
  for (const int ranks : {1, 2, 3, 4}) {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> labels;
    for (int rank = 0; rank < ranks; ++rank) {
      const spec::BatchRange share = spec::evaluation_share(batches, ranks, rank);
      for (std::int64_t number = share.begin; number < share.end; ++number) {
        const Batch batch = evaluation_batch(fixture.source(), number, 5);
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
        labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
        EXPECT_EQ(batch.count(), number == 4 ? 3 : 5);
      }
    }
    ASSERT_EQ(ids.size(), 23u);
    for (std::size_t i = 0; i < 23; ++i) {
      EXPECT_EQ(ids[i], static_cast<std::int64_t>(i));
      EXPECT_EQ(labels[i], fixture.images.labels[static_cast<std::size_t>(fixture.training[i])]);
    }
  }
}

TEST(EvaluationBatches, AreNormalisedAndNeverVaried) {
  const Fixture fixture;
  const Batch batch = evaluation_batch(fixture.source(), 4, 5);
  ASSERT_EQ(batch.values.size(), 3u * 30u);
  for (std::size_t at = 0; at < batch.values.size(); ++at) {
    const std::int64_t image = fixture.training[20 + at / 30];
    EXPECT_EQ(batch.values[at], (*fixture.normalisation)(fixture.images.image(image)[at % 30]));
  }
}

TEST(EvaluationBatches, RefuseANumberThatIsNotThere) {
  const Fixture fixture;
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{5}, INT64_MAX}) {
    EXPECT_THAT(error_of([&] { evaluation_batch(fixture.source(), number, 5); }),
                StartsWith("InvalidArgument: there is no evaluation batch"));
  }
  EXPECT_THAT(error_of([&] { evaluation_batch(fixture.source(), 0, 0); }), StartsWith("InvalidArgument: "));
}

}  // namespace
}  // namespace convoy::records

// Class weights and balanced draws: defined over the whole training part, the same whatever the ranks.
#include "convoy/records/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "convoy/records/images/image_dataset.h"
#include "convoy/records/loader.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ClassWeights, MakeAllClassesWeighAlikeAndOneOnAverage) {
  EXPECT_THAT(balanced_class_weights(std::vector<std::int64_t>{90, 10}), ElementsAre(100.0f / 180, 5.0f));
  EXPECT_THAT(balanced_class_weights(std::vector<std::int64_t>{5, 5, 0}), ElementsAre(1.0f, 1.0f, 0.0f));
}

RC_GTEST_PROP(ClassWeights, HaveTheMeanOne, ()) {
  const auto counts =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 1000)));
  const auto samples = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  RC_PRE(samples > 0);
  const std::vector<float> weights = balanced_class_weights(counts);
  double sum = 0.0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += static_cast<double>(weights[i]) * static_cast<double>(counts[i]);
  RC_ASSERT(std::abs(sum / static_cast<double>(samples) - 1.0) < 1e-6);
}

std::vector<std::int64_t> rare_labels(std::int64_t samples, std::int64_t every) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) labels.push_back(i % every == 0 ? 2 : i % 2);
  return labels;
}

std::vector<std::int64_t> all_draws(std::int64_t samples) {
  std::vector<std::int64_t> draws(static_cast<std::size_t>(samples));
  std::iota(draws.begin(), draws.end(), 0);
  return draws;
}

TEST(DrawMap, DrawsAllClassesAlikeInEachEpoch) {
  const auto labels = rare_labels(100, 20);  // 5 of class 2
  const DrawMap map(labels, 4, 9);
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> counts(4, 0);
    std::map<std::int64_t, int> uses;
    for (const std::int64_t sample : map.samples_of(epoch, all_draws(100))) {
      ++counts[static_cast<std::size_t>(labels[static_cast<std::size_t>(sample)])];
      ++uses[sample];
    }
    EXPECT_EQ(map.class_counts(epoch), counts) << "epoch " << epoch;
    for (const int label : {0, 1, 2}) {
      EXPECT_GE(counts[static_cast<std::size_t>(label)], 33);
      EXPECT_LE(counts[static_cast<std::size_t>(label)], 34);
    }
    EXPECT_EQ(counts[3], 0) << "a class that is not there is not drawn";
    // Within a class, samples are used as evenly as they divide.
    for (const auto& [sample, count] : uses) {
      const bool rare = labels[static_cast<std::size_t>(sample)] == 2;
      EXPECT_GE(count, rare ? 6 : 1) << sample;
      EXPECT_LE(count, rare ? 7 : 1) << sample;
    }
  }
}

TEST(DrawMap, FollowsSeedAndEpochAndNothingElse) {
  const auto labels = rare_labels(60, 10);
  const DrawMap map(labels, 3, 9);
  const auto first = map.samples_of(0, all_draws(60));
  EXPECT_NE(map.samples_of(1, all_draws(60)), first);
  EXPECT_EQ(map.samples_of(0, all_draws(60)), first) << "asked for again after another epoch";
  EXPECT_NE(DrawMap(labels, 3, 10).samples_of(0, all_draws(60)), first);
  EXPECT_EQ(DrawMap(labels, 3, 9).samples_of(0, std::vector<std::int64_t>{7, 3}),
            (std::vector<std::int64_t>{first[7], first[3]}));
  EXPECT_THAT(error_of([&] { map.samples_of(0, std::vector<std::int64_t>{60}); }),
              HasSubstr("there is no draw 60 of 60"));
}

// 31 samples, 4 of them of class 1.
struct Fixture {
  std::shared_ptr<ImageDataset> dataset;
  std::vector<std::int64_t> training;
  std::vector<std::int64_t> labels;
  spec::SamplePlan plan{spec::SamplePlanOptions{31, 8, 4, 2, false, 5}};
  Fixture() {
    ImageSet images = make_images(50, 3, 3);
    for (std::size_t i = 0; i < 50; ++i) images.labels[i] = i % 9 == 0 ? 1 : 0;
    for (std::int64_t i = 0; i < 31; ++i) training.push_back(49 - i);
    for (const std::int64_t index : training) labels.push_back(images.labels[static_cast<std::size_t>(index)]);
    dataset = std::make_shared<ImageDataset>(images, std::vector{Normalisation(0, 1)}, AugmentOptions{}, 2);
  }
  // What all ranks together hand out: (step, replica) -> ids, labels and weights.
  std::map<std::pair<std::int64_t, int>, std::vector<double>> load(int ranks, const LoaderOptions& shared) const {
    std::map<std::pair<std::int64_t, int>, std::vector<double>> parts;
    for (const spec::ReplicaRange& range : spec::deal_replicas(4, ranks)) {
      LoaderOptions options = shared;
      options.replicas = range;
      options.end_step = 8;
      Loader loader({*dataset, training}, plan, options);
      while (!loader.done()) {
        const StepBatch& step = loader.next(std::chrono::seconds(20));
        for (const ReplicaBatches& replica : step.replicas) {
          std::vector<double>& part = parts[{step.step, replica.replica}];
          for (const Batch& batch : replica.micro_batches) {
            for (std::size_t i = 0; i < batch.labels.size(); ++i) {
              part.push_back(static_cast<double>(batch.sample_ids[i]));
              part.push_back(static_cast<double>(batch.labels[i]));
              part.push_back(batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[i]));
              part.push_back(batch.values[i * 9]);
            }
          }
        }
      }
    }
    return parts;
  }
};

TEST(Loader, GivesEachSampleTheWeightOfItsClassWhateverTheRanks) {
  const Fixture fixture;
  LoaderOptions options;
  options.class_weights = balanced_class_weights(count_classes(*fixture.dataset, fixture.training));
  const auto alone = fixture.load(1, options);
  double sum = 0.0;
  for (const auto& [key, part] : alone) {
    for (std::size_t i = 0; i < part.size(); i += 4) {
      EXPECT_EQ(part[i + 2], static_cast<double>(options.class_weights[static_cast<std::size_t>(part[i + 1])]));
      sum += part[i + 2];
    }
  }
  EXPECT_NEAR(sum / 62, 1.0, 1e-6) << "two epochs of 31 samples";
  for (const int ranks : {2, 3, 4}) EXPECT_EQ(fixture.load(ranks, options), alone) << ranks << " ranks";
}

TEST(Loader, DrawsOverTheWholeTrainingPartWhateverTheRanks) {
  const Fixture fixture;
  LoaderOptions options;
  options.draws = std::make_shared<DrawMap>(fixture.labels, 2, 5);
  const auto alone = fixture.load(1, options);
  std::vector<std::vector<std::int64_t>> ids(2);
  std::vector<std::vector<std::int64_t>> counts(2, std::vector<std::int64_t>(2, 0));
  for (const auto& [key, part] : alone) {
    const auto epoch = static_cast<std::size_t>(key.first / 4);
    for (std::size_t i = 0; i < part.size(); i += 4) {
      ids[epoch].push_back(static_cast<std::int64_t>(part[i]));
      ++counts[epoch][static_cast<std::size_t>(part[i + 1])];
    }
  }
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    std::sort(ids[epoch].begin(), ids[epoch].end());
    EXPECT_EQ(ids[epoch], all_draws(31)) << "the ledger sees each draw once";
    EXPECT_EQ(counts[epoch], options.draws->class_counts(static_cast<std::int64_t>(epoch)));
    EXPECT_LE(std::abs(counts[epoch][0] - counts[epoch][1]), 1);
  }
  for (const int ranks : {2, 3, 4}) EXPECT_EQ(fixture.load(ranks, options), alone) << ranks << " ranks";
}

}  // namespace
}  // namespace convoy::records

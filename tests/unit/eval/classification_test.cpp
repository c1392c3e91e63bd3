// Rates follow from merged counts: they are those of one process, however the samples were dealt out.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/eval/classification_state.h"
#include "convoy/eval/confusion_matrix.h"

namespace convoy::eval {
namespace {

TEST(ConfusionMatrix, CountsByTruthAndPrediction) {
  ConfusionMatrix matrix(3);
  matrix.add(0, 0, 5);
  matrix.add(0, 2);
  matrix.add(1, 0, 2);
  matrix.add(2, 2, 4);
  EXPECT_EQ(matrix.samples(), 12);
  EXPECT_EQ(matrix.count(0, 2), 1);
  EXPECT_EQ(matrix.count(2, 0), 0);
  EXPECT_DOUBLE_EQ(matrix.accuracy(), 9.0 / 12.0);
  const ClassRates first = matrix.rates(0);
  EXPECT_DOUBLE_EQ(first.precision, 5.0 / 7.0);
  EXPECT_DOUBLE_EQ(first.recall, 5.0 / 6.0);
  EXPECT_DOUBLE_EQ(first.f1, 10.0 / 13.0);
  EXPECT_EQ(first.support, 6);
  EXPECT_DOUBLE_EQ(matrix.macro_f1(), (10.0 / 13.0 + 0.0 + 8.0 / 9.0) / 3.0);
}

TEST(ConfusionMatrix, RatesOfNothingAreZero) {
  ConfusionMatrix matrix(2);
  EXPECT_EQ(matrix.accuracy(), 0.0);
  EXPECT_EQ(matrix.rates(1).precision, 0.0);
  EXPECT_EQ(matrix.rates(1).recall, 0.0);
  EXPECT_EQ(matrix.macro_f1(), 0.0);
  matrix.add(0, 0, 3);  // class 1 never occurs
  EXPECT_DOUBLE_EQ(matrix.accuracy(), 1.0);
  EXPECT_DOUBLE_EQ(matrix.macro_f1(), 0.5);
}

TEST(ConfusionMatrix, F1ComesFromMergedCountsNotFromAMeanOfRanks) {
  ConfusionMatrix rank0(2);
  rank0.add(1, 1);
  ConfusionMatrix rank1(2);
  rank1.add(1, 1);
  rank1.add(0, 1, 2);
  rank1.add(1, 0);
  EXPECT_NEAR((rank0.rates(1).f1 + rank1.rates(1).f1) / 2, 0.7, 1e-12);
  rank0.merge(rank1);
  EXPECT_NEAR(rank0.rates(1).f1, 0.5714, 5e-5);
}

TEST(ConfusionMatrix, AccuracyCountsNoSampleTwice) {
  // 5 samples, correct 1 1 1 1 0, dealt to 1 to 4 ranks: 0.8 each time.
  for (int ranks = 1; ranks <= 4; ++ranks) {
    std::vector<ConfusionMatrix> parts(static_cast<std::size_t>(ranks), ConfusionMatrix(2));
    for (int sample = 0; sample < 5; ++sample)
      parts[static_cast<std::size_t>(sample % ranks)].add(1, sample < 4 ? 1 : 0);
    for (int rank = 1; rank < ranks; ++rank) parts[0].merge(parts[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(parts[0].samples(), 5);
    EXPECT_DOUBLE_EQ(parts[0].accuracy(), 0.8);
  }
}

RC_GTEST_PROP(ConfusionMatrix, SumOfCountsIsTheSameAsMerging, ()) {
  const int classes = *rc::gen::inRange(1, 6);
  const auto samples = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, classes), rc::gen::inRange(0, classes)));
  ConfusionMatrix whole(classes);
  ConfusionMatrix parts[3] = {ConfusionMatrix(classes), ConfusionMatrix(classes), ConfusionMatrix(classes)};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    whole.add(samples[i].first, samples[i].second);
    parts[i % 3].add(samples[i].first, samples[i].second);
  }
  ConfusionMatrix merged(classes);
  for (const ConfusionMatrix& part : parts) merged.merge(part);
  for (std::size_t i = 0; i < parts[0].counts().size(); ++i) {
    parts[0].counts()[i] += parts[1].counts()[i] + parts[2].counts()[i];
  }
  RC_ASSERT(merged == whole);
  RC_ASSERT(parts[0] == whole);
  RC_ASSERT(merged.samples() == static_cast<std::int64_t>(samples.size()));
}

TEST(ConfusionMatrix, RefusesClassesThatAreNotThere) {
  ConfusionMatrix matrix(3);
  EXPECT_THROW(matrix.add(3, 0), Error);
  EXPECT_THROW(matrix.add(0, -1), Error);
  EXPECT_THROW(matrix.merge(ConfusionMatrix(2)), Error);
  EXPECT_THROW(ConfusionMatrix(0), Error);
  try {
    matrix.add(1, 7);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "predicted class 7 is not among 0 to 2");
  }
  EXPECT_EQ(matrix.samples(), 0);
}

TEST(LossSum, IsNotFlooredByAMeanOfCounters) {
  LossSum rank0{6.0, 3};
  const LossSum rank1{4.0, 2};
  rank0.merge(rank1);
  EXPECT_EQ(rank0.count, 5);
  EXPECT_DOUBLE_EQ(rank0.mean(), 2.0);  // a mean of counters, kept as an integer, gives 5 / 2 = 2.5
  EXPECT_EQ(LossSum{}.mean(), 0.0);
}

TEST(LossSum, InBatchOrderDoesNotDependOnWhoHadABatch) {
  const std::vector<LossSum> batches = {{1e16, 1}, {1.0, 2}, {-1e16, 3}, {1.0, 4}};
  const LossSum all = in_batch_order(batches);
  EXPECT_EQ(all.sum, ((1e16 + 1.0) - 1e16) + 1.0);
  EXPECT_EQ(all.count, 10);
  LossSum even = batches[0];
  even.merge(batches[2]);
  LossSum odd = batches[1];
  odd.merge(batches[3]);
  even.merge(odd);
  EXPECT_NE(even.sum, all.sum);  // what merging rank by rank would have given
}

TEST(ClassificationState, WritesItsRates) {
  ClassificationState one(2);
  one.confusion.add(0, 0, 3);
  one.loss = {1.5, 3};
  ClassificationState two(2);
  two.confusion.add(1, 0, 1);
  two.loss = {2.5, 1};
  one.merge(two);
  const auto json = one.to_json();
  EXPECT_EQ(json["samples"], 4);
  EXPECT_EQ(json["loss"], 1.0);
  EXPECT_EQ(json["accuracy"], 0.75);
  EXPECT_EQ(json["confusion"], nlohmann::ordered_json::parse("[[3,0],[1,0]]"));
  EXPECT_EQ(json["classes"][1]["support"], 1);
  EXPECT_EQ(json["classes"][1]["recall"], 0.0);
  EXPECT_DOUBLE_EQ(json["macro_f1"], (6.0 / 7.0) / 2.0);
}

}  // namespace
}  // namespace convoy::eval

// Warnings appear where a rate deceives, and nowhere else.
#include "convoy/eval/imbalance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ConfusionMatrix two_classes(std::int64_t tn, std::int64_t fp, std::int64_t fn, std::int64_t tp) {
  ConfusionMatrix matrix(2);
  matrix.add(0, 0, tn);
  matrix.add(0, 1, fp);
  matrix.add(1, 0, fn);
  matrix.add(1, 1, tp);
  return matrix;
}

const std::vector<std::string> kNames = {"no", "yes"};

TEST(ImbalanceWarnings, HighAccuracyDoesNotHideTheRareClass) {
  EXPECT_THAT(imbalance_warnings(two_classes(967, 8, 22, 3), kNames),
              ElementsAre("accuracy is 0.97 while recall of class yes is 0.12 (25 of 1000 samples)",
                          "accuracy is 0.97, and always answering class no would give 0.97"));
  EXPECT_THAT(imbalance_warnings(two_classes(970, 5, 12, 13), kNames), IsEmpty());
}

TEST(ImbalanceWarnings, BalancedClassesGiveNone) {
  EXPECT_THAT(imbalance_warnings(two_classes(480, 20, 400, 100), kNames), IsEmpty());
  EXPECT_THAT(imbalance_warnings(ConfusionMatrix(2)), IsEmpty());
  ConfusionMatrix ten(10);
  for (int i = 0; i < 10; ++i) ten.add(i, 0, 100);  // untrained: accuracy 0.1, plainly bad
  EXPECT_THAT(imbalance_warnings(ten), IsEmpty());
}

TEST(ImbalanceWarnings, AClassWithoutSamplesHasNoRecallToComplainAbout) {
  EXPECT_THAT(imbalance_warnings(two_classes(100, 0, 0, 0), kNames),
              ElementsAre("accuracy is 1.00, and always answering class no would give 1.00"));
}

TEST(ImbalanceWarnings, NamelessClassesAreNumbers) {
  ConfusionMatrix matrix(3);
  matrix.add(0, 0, 500);
  matrix.add(1, 1, 480);
  matrix.add(2, 0, 20);
  EXPECT_THAT(imbalance_warnings(matrix),
              ElementsAre("accuracy is 0.98 while recall of class 2 is 0.00 (20 of 1000 samples)"));
}

TEST(PartWarnings, NamePartClassAndCount) {
  const std::vector<std::int64_t> counts = {500, 2, 0, 1, 10};
  EXPECT_THAT(
      part_warnings("validation", counts, std::vector<std::string>{"cat", "dog", "owl"}),
      ElementsAre("part validation has only 2 samples of class dog", "part validation has no sample of class owl",
                  "part validation has only 1 sample of class 3"));
}

}  // namespace
}  // namespace convoy::eval

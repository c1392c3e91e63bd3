// Shift, flip and normalisation on images small enough to see.
#include "convoy/records/images/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The image 1 2 3 / 4 5 6, prepared without normalisation.
std::vector<float> prepared(const Variation& variation) {
  const std::vector<std::uint8_t> image = {1, 2, 3, 4, 5, 6};
  std::vector<float> out(6, -1.0f);
  prepare_image(image, 2, 3, variation, Normalisation(0.0, 1.0), out);
  return out;
}

TEST(Augmentation, LeavesTheImageWhenNothingWasDrawn) { EXPECT_THAT(prepared({}), ElementsAre(1, 2, 3, 4, 5, 6)); }

TEST(Augmentation, ShiftsDownRightUpAndLeftAndFillsWithZeros) {
  EXPECT_THAT(prepared({1, 0, false}), ElementsAre(0, 0, 0, 1, 2, 3));
  EXPECT_THAT(prepared({0, 1, false}), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(prepared({-1, 0, false}), ElementsAre(4, 5, 6, 0, 0, 0));
  EXPECT_THAT(prepared({0, -2, false}), ElementsAre(3, 0, 0, 6, 0, 0));
  EXPECT_THAT(prepared({2, 0, false}), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(prepared({0, -7, false}), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Augmentation, FlipsBeforeItShifts) {
  EXPECT_THAT(prepared({0, 0, true}), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(prepared({1, 1, true}), ElementsAre(0, 0, 0, 0, 3, 2));
}

TEST(Augmentation, NormalisesTheZerosThatAShiftBringsIn) {
  const std::vector<std::uint8_t> image = {10, 30};
  std::vector<float> out(2);
  prepare_image(image, 1, 2, {0, 1, false}, Normalisation(20.0, 10.0), out);
  EXPECT_THAT(out, ElementsAre(-2.0f, -1.0f));
}

TEST(Augmentation, BelongsToSeedEpochAndSample) {
  const AugmentOptions options{3, true};
  const auto drawn = [&](std::uint64_t seed, std::int64_t epoch) {
    std::vector<std::int64_t> all;
    for (std::int64_t sample = 0; sample < 50; ++sample) {
      const Variation variation = draw_variation(options, seed, epoch, sample);
      all.push_back(variation.down * 100 + variation.right * 10 + (variation.flipped ? 1 : 0));
    }
    return all;
  };
  EXPECT_EQ(drawn(1, 0), drawn(1, 0));
  EXPECT_NE(drawn(1, 0), drawn(1, 1));
  EXPECT_NE(drawn(1, 0), drawn(2, 0));
  const auto once = drawn(1, 0);
  EXPECT_GT(std::set<std::int64_t>(once.begin(), once.end()).size(), 25u);
}

TEST(Augmentation, DrawsEveryShiftAndHalfOfTheFlips) {
  std::set<std::int64_t> down;
  std::set<std::int64_t> right;
  int flips = 0;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    const Variation variation = draw_variation({2, true}, 5, 1, sample);
    down.insert(variation.down);
    right.insert(variation.right);
    flips += variation.flipped ? 1 : 0;
  }
  EXPECT_THAT(down, ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_THAT(right, ElementsAre(-2, -1, 0, 1, 2));
  EXPECT_GT(flips, 430);
  EXPECT_LT(flips, 570);
}

TEST(Augmentation, DrawsTheSameFlipWhateverTheShift) {
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    EXPECT_EQ(draw_variation({0, true}, 1, 0, sample).flipped, draw_variation({4, true}, 1, 0, sample).flipped);
    EXPECT_EQ(draw_variation({4, false}, 1, 0, sample).down, draw_variation({4, true}, 1, 0, sample).down);
  }
}

TEST(Normalisation, GivesTheListedImagesMeanZeroAndDeviationOne) {
  const ImageSet set = make_images(20, 5, 5);
  const std::vector<std::int64_t> listed = {3, 4, 9, 19};
  const Normalisation normalisation = measure_normalisation(set, listed);
  double sum = 0.0;
  double squares = 0.0;
  for (const std::int64_t index : listed) {
    for (const std::uint8_t pixel : set.image(index)) {
      sum += normalisation(pixel);
      squares += static_cast<double>(normalisation(pixel)) * normalisation(pixel);
    }
  }
  EXPECT_NEAR(sum / 100, 0.0, 1e-7);
  EXPECT_NEAR(squares / 100, 1.0, 1e-6);
}

TEST(Normalisation, IsMeasuredOnTheListedImagesOnlyInAnyOrder) {
  const ImageSet set{3, 1, 2, {0, 10, 255, 255, 20, 30}, {0, 0, 0}};
  const Normalisation normalisation = measure_normalisation(set, std::vector<std::int64_t>{0, 2});
  EXPECT_EQ(normalisation.mean(), 15.0);
  EXPECT_EQ(normalisation.deviation(), std::sqrt(125.0));
  const Normalisation turned = measure_normalisation(set, std::vector<std::int64_t>{2, 0});
  EXPECT_EQ(turned.mean(), normalisation.mean());
  EXPECT_EQ(turned.deviation(), normalisation.deviation());
}

TEST(Normalisation, OfOneSingleColourHasDeviationOne) {
  const ImageSet set{2, 1, 2, {9, 9, 9, 9}, {0, 0}};
  const Normalisation normalisation = measure_normalisation(set, std::vector<std::int64_t>{0, 1});
  EXPECT_EQ(normalisation(9), 0.0f);
  EXPECT_EQ(normalisation(11), 2.0f);
}

TEST(Normalisation, RefusesAnEmptyListAndImagesThatAreNotThere) {
  const ImageSet set = make_images(3, 2, 2);
  EXPECT_THAT(error_of([&] { measure_normalisation(set, {}); }), HasSubstr("InvalidArgument: an empty training part"));
  EXPECT_THAT(error_of([&] {
                measure_normalisation(set, std::vector<std::int64_t>{1, 3});
              }),
              HasSubstr("InvalidArgument: there is no image 3 of 3"));
}

}  // namespace
}  // namespace convoy::records

// Random streams: their numbers are part of every result, so they are fixed here; and they are even and independent.
#include "convoy/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace convoy {
namespace {

constexpr std::array kPurposes = {StreamPurpose::kInitialisation, StreamPurpose::kSampleOrder,
                                  StreamPurpose::kSplit,          StreamPurpose::kAugmentation,
                                  StreamPurpose::kLayer,          StreamPurpose::kSynthesis};

// The chi-square statistic of counts that should be equal.
double chi_square(const std::vector<int>& counts) {
  double total = 0.0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double statistic = 0.0;
  for (const int count : counts) statistic += (count - expected) * (count - expected) / expected;
  return statistic;
}

TEST(RandomStream, IsSplitMix64) {
  RandomStream stream(1234567);
  EXPECT_EQ(stream.next(), 6457827717110365317u);
  EXPECT_EQ(stream.next(), 3203168211198807973u);
  EXPECT_EQ(stream.next(), 9817491932198370423u);
}

TEST(RandomStream, OfAPurposeAndKeyNeverChanges) {
  RandomStream stream(StreamPurpose::kAugmentation, {1, 5, 2, 3});
  EXPECT_EQ(stream.next(), 0x8b76efb44207bc84u);
  EXPECT_EQ(stream.next(), 0xde17b3511e10bde4u);
  EXPECT_EQ(stream.next(), 0x9910fe27785c179eu);
}

TEST(RandomStream, DerivedNumbersNeverChange) {
  RandomStream small(42);
  std::vector<std::uint64_t> drawn;
  for (int i = 0; i < 12; ++i) drawn.push_back(small.below(10));
  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{7, 1, 2, 3, 0, 8, 2, 8, 3, 6, 2, 4}));

  RandomStream large(42);  // a bound at which one draw in four is rejected
  EXPECT_EQ(large.below(3ull << 62), 10259593149566456559u);
  EXPECT_EQ(large.below(3ull << 62), 2212369569095169218u);
  EXPECT_EQ(large.below(3ull << 62), 3854462811347072893u);

  RandomStream uniform(42);
  EXPECT_EQ(uniform.uniform(), 0.7415648787718233);
  EXPECT_EQ(uniform.uniform(), 0.1599103928769201);
  EXPECT_DOUBLE_EQ(RandomStream(42).normal(), 0.8822489062222688);
}

TEST(StreamSeed, NeverChanges) {
  EXPECT_EQ(stream_seed(StreamPurpose::kInitialisation, {}), 0x2fbc593564db792eu);
  EXPECT_EQ(stream_seed(StreamPurpose::kSampleOrder, {1, 0}), 0x1ea7976b2709cdeeu);
  EXPECT_EQ(stream_seed(stream_seed(StreamPurpose::kLayer, {1}), "features.3.conv"), 0x85db0b99e8f36fbfu);
}

TEST(StreamSeed, DiffersByPurposeKeyOrderLengthAndName) {
  std::set<std::uint64_t> seeds;
  for (const StreamPurpose purpose : kPurposes) {
    seeds.insert(stream_seed(purpose, {}));
    seeds.insert(stream_seed(purpose, {0}));
    seeds.insert(stream_seed(purpose, {0, 0}));
    seeds.insert(stream_seed(purpose, {1, 2}));
    seeds.insert(stream_seed(purpose, {2, 1}));
    seeds.insert(stream_seed(stream_seed(purpose, {1, 2}), "fc1"));
    seeds.insert(stream_seed(stream_seed(purpose, {1, 2}), "fc2"));
  }
  EXPECT_EQ(seeds.size(), 7 * kPurposes.size());
}

TEST(RandomStream, OfDifferentPurposesAreIndependent) {
  // Of 64 bits, independent numbers share 32 on average; 2000 numbers put the mean within 0.4 of it.
  for (std::size_t a = 0; a < kPurposes.size(); ++a) {
    for (std::size_t b = a + 1; b < kPurposes.size(); ++b) {
      double shared = 0.0;
      for (std::uint64_t key = 0; key < 2000; ++key) {
        const std::uint64_t x = RandomStream(kPurposes[a], {key}).next();
        const std::uint64_t y = RandomStream(kPurposes[b], {key}).next();
        shared += __builtin_popcountll(~(x ^ y));
      }
      EXPECT_NEAR(shared / 2000, 32.0, 0.4);
    }
  }
}

TEST(Below, IsEven) {
  RandomStream stream(7);
  std::vector<int> counts(10);
  for (int i = 0; i < 100000; ++i) ++counts[stream.below(counts.size())];
  EXPECT_LT(chi_square(counts), 27.9);  // 9 degrees of freedom, 1 in 1000
}

TEST(Below, IsEvenForBoundsNearTheWholeRange) {
  // Without the rejection, every second number would be 0 modulo 3.
  RandomStream stream(7);
  std::vector<int> counts(3);
  for (int i = 0; i < 30000; ++i) ++counts[stream.below(3ull << 62) % 3];
  EXPECT_LT(chi_square(counts), 13.8);  // 2 degrees of freedom, 1 in 1000
}

TEST(Below, OneIsAlwaysZero) {
  RandomStream stream(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(stream.below(1), 0u);
}

TEST(Uniform, FillsTheIntervalEvenlyAndNeverReachesOne) {
  RandomStream stream(11);
  std::vector<int> counts(16);
  for (int i = 0; i < 64000; ++i) {
    const double value = stream.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++counts[static_cast<std::size_t>(value * 16)];
  }
  EXPECT_LT(chi_square(counts), 37.7);  // 15 degrees of freedom, 1 in 1000
}

TEST(Normal, HasTheMomentsOfTheStandardNormal) {
  constexpr int kDraws = 100000;
  RandomStream stream(13);
  double first = 0.0, second = 0.0, fourth = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.normal();
    ASSERT_TRUE(std::isfinite(value));
    first += value / kDraws;
    second += value * value / kDraws;
    fourth += value * value * value * value / kDraws;
  }
  EXPECT_NEAR(first, 0.0, 0.015);
  EXPECT_NEAR(second, 1.0, 0.02);
  EXPECT_NEAR(fourth, 3.0, 0.15);
}

}  // namespace
}  // namespace convoy

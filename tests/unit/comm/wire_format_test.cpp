// Wire formats against one value at a time, and what must hold of each.
#include "convoy/comm/wire/wire_format.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "convoy/base/half.h"
#include "convoy/base/random.h"

namespace convoy::comm {
namespace {

using Floats = std::vector<float>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array kFormats{WireFormat::kPlain, WireFormat::kFloat16, WireFormat::kBFloat16, WireFormat::kInt8,
                              WireFormat::kSparse};

// A quarter of all values are zero; others have any size between 1e-3 and 1e3.
Floats some_values(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  Floats values(count);
  for (float& value : values) {
    const double size = std::pow(10.0, 6 * random.uniform() - 3);
    value = static_cast<float>(random.below(4) == 0 ? 0 : random.below(2) == 0 ? size : -size);
  }
  return values;
}

Floats there_and_back(WireFormat format, const Floats& values, std::size_t* taken = nullptr) {
  std::vector<std::byte> wire(most_encoded_bytes(format, static_cast<std::int64_t>(values.size())) + 1);
  // At an odd address, as a message may lie.
  const std::size_t bytes = encode(format, values, wire.data() + 1);
  if (taken != nullptr) *taken = bytes;
  Floats back(values.size(), -7);
  EXPECT_TRUE(decode(format, std::span<const std::byte>(wire.data() + 1, bytes), back));
  return back;
}

TEST(WireFormat, HalvesAreThoseOfOneValueAtATime) {
  for (const std::size_t count : {0U, 1U, 3U, 31U, 1000U}) {
    const Floats values = some_values(count, 3 + count);
    const Floats half = there_and_back(WireFormat::kFloat16, values);
    const Floats brain = there_and_back(WireFormat::kBFloat16, values);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(half[i], float_of_float16(float16_of_float(values[i])));
      EXPECT_EQ(brain[i], float_of_bfloat16(bfloat16_of_float(values[i])));
    }
  }
}

TEST(WireFormat, Float16KeepsFiniteValuesFinite) {
  const Floats back = there_and_back(WireFormat::kFloat16, {1e30F, -70000, kInfinity, -kInfinity, NAN, 65504});
  EXPECT_EQ(back[0], 65504);
  EXPECT_EQ(back[1], -65504);
  EXPECT_EQ(back[2], kInfinity);
  EXPECT_EQ(back[3], -kInfinity);
  EXPECT_TRUE(std::isnan(back[4]));
  EXPECT_EQ(back[5], 65504);
}

TEST(WireFormat, Int8IsOffByAtMostHalfAStepOfItsBlock) {
  const Floats values = some_values(1000, 9);
  std::size_t bytes = 0;
  const Floats back = there_and_back(WireFormat::kInt8, values, &bytes);
  EXPECT_EQ(bytes, 1000U + 4 * 4U);
  for (std::size_t begin = 0; begin < values.size(); begin += kInt8Block) {
    const std::size_t end = std::min<std::size_t>(values.size(), begin + kInt8Block);
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    // A step is less than twice what the largest value needs.
    for (std::size_t i = begin; i < end; ++i) EXPECT_LE(std::abs(back[i] - values[i]), largest / 127);
  }
}

TEST(WireFormat, Int8ShowsThatABlockWasNotFinite) {
  for (const float bad : {kInfinity, NAN}) {
    Floats values(600, 1.0F);
    values[300] = bad;
    const Floats back = there_and_back(WireFormat::kInt8, values);
    EXPECT_EQ(back[0], 1);
    EXPECT_TRUE(std::isnan(back[256]));
    EXPECT_TRUE(std::isnan(back[511]));
    EXPECT_EQ(back[512], 1);
  }
}

TEST(WireFormat, SparseIsExactAndNeverMuchLongerThanPlain) {
  std::size_t bytes = 0;
  EXPECT_EQ(there_and_back(WireFormat::kSparse, {0, 0, 5, 0, 0, -3, 0, 0}, &bytes), Floats({0, 0, 5, 0, 0, -3, 0, 0}));
  EXPECT_EQ(bytes, 8U + 2 * 8U);
  EXPECT_EQ(there_and_back(WireFormat::kSparse, {1, 2, 3}, &bytes), Floats({1, 2, 3}));
  EXPECT_EQ(bytes, 8U + 12U);
  EXPECT_TRUE(std::isnan(there_and_back(WireFormat::kSparse, {0, 0, 0, NAN})[3]));
}

TEST(WireFormat, BrokenMessagesAreRefused) {
  Floats values(4);
  std::vector<std::byte> wire(64);
  const std::size_t bytes = encode(WireFormat::kSparse, Floats({0, 0, 0, 5, 0, 0, 0, 0}), wire.data());
  EXPECT_TRUE(decode(WireFormat::kSparse, std::span<const std::byte>(wire.data(), bytes), values));
  wire[8] = std::byte{4};  // a place behind the last element
  EXPECT_FALSE(decode(WireFormat::kSparse, std::span<const std::byte>(wire.data(), bytes), values));
  EXPECT_FALSE(decode(WireFormat::kSparse, std::span<const std::byte>(wire.data(), bytes - 1), values));
  EXPECT_FALSE(decode(WireFormat::kFloat16, std::span<const std::byte>(wire.data(), 7), values));
}

RC_GTEST_PROP(WireFormat, WhatIsReadBackIsWrittenTheSameWayAgain, ()) {
  const auto bits = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::arbitrary<std::uint32_t>());
  Floats values;
  for (const std::uint32_t word : bits) values.push_back(std::bit_cast<float>(word));
  for (const WireFormat format : kFormats) {
    const Floats once = there_and_back(format, values);
    const Floats twice = there_and_back(format, once);
    for (std::size_t i = 0; i < once.size(); ++i) {
      RC_ASSERT(once[i] == twice[i] || (std::isnan(once[i]) && std::isnan(twice[i])));
    }
  }
}

TEST(WireFormat, NamesLeadBackToFormats) {
  for (const WireFormat format : kFormats) EXPECT_EQ(wire_format_of(to_string(format)), format);
  EXPECT_EQ(wire_format_of("float8"), std::nullopt);
}

TEST(KeepLargest, KeepsSoManyAndOfEqualOnesTheFirst) {
  Floats values{1, -5, 3, -3, 3, 0.5F};
  keep_largest(values, 3);
  EXPECT_EQ(values, Floats({0, -5, 3, -3, 0, 0}));
  keep_largest(values, 9);
  EXPECT_EQ(values, Floats({0, -5, 3, -3, 0, 0}));
  keep_largest(values, 0);
  EXPECT_EQ(values, Floats(6, 0.0F));
  Floats with_nan{1, NAN, 2};
  keep_largest(with_nan, 1);
  EXPECT_EQ(with_nan[0], 0);
  EXPECT_TRUE(std::isnan(with_nan[1]));
  EXPECT_EQ(with_nan[2], 0);
}

}  // namespace
}  // namespace convoy::comm

// The 16-bit types against their definition: all values one way, neighbours and ties the other way.
#include "convoy/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace convoy {
namespace {

// The value that IEEE 754 gives to bits with so many of the fraction and such a bias.
double by_definition(std::uint16_t bits, int fraction_bits, int bias) {
  const int exponent_most = (1 << (15 - fraction_bits)) - 1;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_most) return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

struct HalfType {
  const char* name;
  int fraction_bits;
  int bias;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};

constexpr HalfType kHalves[] = {{"bfloat16", 7, 127, float_of_bfloat16, bfloat16_of_float},
                                {"float16", 10, 15, float_of_float16, float16_of_float}};

TEST(Half, EveryValueIsTheOneOfItsDefinitionAndComesBack) {
  for (const HalfType& type : kHalves) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const double wanted = by_definition(bits, type.fraction_bits, type.bias);
      const float found = type.widen(bits);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(found)) << type.name << " " << i;
        ASSERT_EQ(type.narrow(found), bits | (1 << (type.fraction_bits - 1))) << type.name << " " << i;
        continue;
      }
      ASSERT_EQ(found, static_cast<float>(wanted)) << type.name << " " << i;
      ASSERT_EQ(std::signbit(found), std::signbit(wanted)) << type.name << " " << i;
      ASSERT_EQ(type.narrow(found), bits) << type.name << " " << i;
    }
  }
}

// Between two neighbours: what lies nearer to one becomes that one, the middle becomes the even one.
TEST(Half, RoundsToTheNearestAndInTheMiddleToTheEven) {
  for (const HalfType& type : kHalves) {
    const int endless = ((1 << (15 - type.fraction_bits)) - 1) << type.fraction_bits;
    for (int i = 0; i + 1 < endless; ++i) {
      const auto lower = static_cast<std::uint16_t>(i);
      const auto upper = static_cast<std::uint16_t>(i + 1);
      const double between = (static_cast<double>(type.widen(lower)) + static_cast<double>(type.widen(upper))) / 2;
      const auto middle = static_cast<float>(between);
      if (static_cast<double>(middle) != between) continue;  // the smallest bfloat16 have no middle in float32
      const std::uint16_t even = i % 2 == 0 ? lower : upper;
      ASSERT_EQ(type.narrow(middle), even) << type.name << " " << i;
      ASSERT_EQ(type.narrow(-middle), even | 0x8000) << type.name << " " << i;
      ASSERT_EQ(type.narrow(std::nextafter(middle, 0.0F)), lower) << type.name << " " << i;
      ASSERT_EQ(type.narrow(std::nextafter(middle, HUGE_VALF)), upper) << type.name << " " << i;
    }
  }
}

TEST(Half, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(float16_of_float(65519.996F), 0x7bff);
  EXPECT_EQ(float16_of_float(65520.0F), 0x7c00);
  EXPECT_EQ(float16_of_float(-1e30F), 0xfc00);
  EXPECT_EQ(bfloat16_of_float(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(bfloat16_of_float(HUGE_VALF), 0x7f80);
}

}  // namespace
}  // namespace convoy

// The 16-bit floating point types as bits: bfloat16 and IEEE 754 binary16 ("float16"), one value at a time.
#pragma once

#include <bit>
#include <cstdint>

namespace convoy {

/// Returns the value of a bfloat16: the upper half of a float32.
constexpr float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Returns the bfloat16 next to a value; of two equally near ones the even one. A NaN stays a NaN and becomes quiet.
constexpr std::uint16_t bfloat16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// Returns the value of a float16. A NaN becomes quiet.
constexpr float float_of_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    const std::uint32_t quiet = magnitude > 0x7c00U ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | (magnitude & 0x3ffU) << 13);
  }
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float tiny = static_cast<float>(magnitude) * 0x1p-24F;
  return (bits & 0x8000U) != 0 ? -tiny : tiny;
}

/// Returns the float16 next to a value; of two equally near ones the even one. What lies above 65504 by half a step or
/// more becomes infinite. A NaN stays a NaN and becomes quiet.
constexpr std::uint16_t float16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude >= 0x38800000U) {
    const std::uint32_t even = (magnitude >> 13) & 1U;
    return static_cast<std::uint16_t>(sign | ((magnitude - (112U << 23) + 0xfffU + even) >> 13));
  }
  // Below the normal numbers a step is 2^-24: adding 0.5, where a float32 has just that step, rounds.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
}

}  // namespace convoy

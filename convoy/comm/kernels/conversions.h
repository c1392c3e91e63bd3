// Conversions between float32 and the 16-bit types, to the nearest and of two equally near ones to the even value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::comm::kernels {

/// Rounds float32 to float16 at any address; finite values beyond 65504 become 65504 with their sign.
void float16_from_float32(const float* from, std::byte* to, std::int64_t count);
/// Widens float16 to float32.
void float32_from_float16(const std::byte* from, float* to, std::int64_t count);
/// Rounds float32 to bfloat16.
void bfloat16_from_float32(const float* from, std::byte* to, std::int64_t count);
/// Widens bfloat16 to float32.
void float32_from_bfloat16(const std::byte* from, float* to, std::int64_t count);

}  // namespace convoy::comm::kernels

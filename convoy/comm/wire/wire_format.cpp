// int8 and sparse in plain loops; the 16-bit formats in the kernels.
#include "convoy/comm/wire/wire_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "convoy/comm/kernels/conversions.h"

namespace convoy::comm {
namespace {

constexpr std::pair<WireFormat, std::string_view> kNames[] = {{WireFormat::kPlain, "none"},
                                                              {WireFormat::kFloat16, "float16"},
                                                              {WireFormat::kBFloat16, "bfloat16"},
                                                              {WireFormat::kInt8, "int8"},
                                                              {WireFormat::kSparse, "top_k"}};

constexpr std::size_t kScaleBytes = sizeof(float);
// The head of a sparse message: whether it lists places, and how many values follow.
constexpr std::size_t kSparseHead = 2 * sizeof(std::uint32_t);

// Without bytes there may be no memory either.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU; }

// Returns the smallest power of two by which 127 steps reach the largest magnitude; NaN when there is no such number.
float scale_of(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude(value));
  if (largest >= 0x7f800000U) return std::numeric_limits<float>::quiet_NaN();
  int exponent = 0;
  const float mantissa = std::frexp(std::bit_cast<float>(largest) / 127.0F, &exponent);
  if (mantissa == 0.5F) --exponent;
  // The inverse has to be a number, too.
  constexpr int kLeast = -126;
  return std::ldexp(1.0F, std::max(exponent, kLeast));
}

std::size_t encode_int8(std::span<const float> values, std::byte* to) {
  std::byte* at = to;
  for (std::size_t begin = 0; begin < values.size(); begin += kInt8Block) {
    const std::span<const float> block =
        values.subspan(begin, std::min<std::size_t>(kInt8Block, values.size() - begin));
    const float scale = scale_of(block);
    std::memcpy(at, &scale, kScaleBytes);
    at += kScaleBytes;
    const float inverse = std::isnan(scale) ? 0 : 1 / scale;
    // Adding a number whose steps are whole ones rounds to the nearest, of two equally near ones to the even one.
    constexpr float kWholeSteps = 12582912.0F;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const float value = std::isnan(scale) ? 0 : block[i];
      const float rounded = (value * inverse + kWholeSteps) - kWholeSteps;
      at[i] = static_cast<std::byte>(static_cast<std::int8_t>(rounded));
    }
    at += block.size();
  }
  return static_cast<std::size_t>(at - to);
}

void decode_int8(const std::byte* from, std::span<float> values) {
  for (std::size_t begin = 0; begin < values.size(); begin += kInt8Block) {
    const std::span<float> block = values.subspan(begin, std::min<std::size_t>(kInt8Block, values.size() - begin));
    float scale = 0;
    std::memcpy(&scale, from, kScaleBytes);
    from += kScaleBytes;
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<float>(static_cast<std::int8_t>(from[i])) * scale;
    }
    from += block.size();
  }
}

std::size_t encode_sparse(std::span<const float> values, std::byte* to) {
  std::uint32_t count = 0;
  for (const float value : values) count += value != 0 ? 1 : 0;
  const std::size_t listed = std::size_t{count} * (sizeof(std::uint32_t) + sizeof(float));
  const bool lists = listed < values.size() * sizeof(float);
  if (!lists) count = static_cast<std::uint32_t>(values.size());
  const std::array<std::uint32_t, 2> head{lists ? 1U : 0U, count};
  std::memcpy(to, head.data(), kSparseHead);
  std::byte* at = to + kSparseHead;
  if (!lists) {
    copy_bytes(at, values.data(), values.size_bytes());
    return kSparseHead + values.size() * sizeof(float);
  }
  std::byte* number = at + std::size_t{count} * sizeof(std::uint32_t);
  for (std::uint32_t place = 0; place < values.size(); ++place) {
    if (!(values[place] != 0)) continue;
    std::memcpy(at, &place, sizeof(place));
    std::memcpy(number, &values[place], sizeof(float));
    at += sizeof(place);
    number += sizeof(float);
  }
  return kSparseHead + listed;
}

std::array<std::uint32_t, 2> sparse_head(std::span<const std::byte> bytes) {
  std::array<std::uint32_t, 2> head{};
  std::memcpy(head.data(), bytes.data(), kSparseHead);
  return head;
}

bool decode_sparse(std::span<const std::byte> bytes, std::span<float> values) {
  const auto [lists, count] = sparse_head(bytes);
  const std::byte* const places = bytes.data() + kSparseHead;
  if (lists == 0) {
    if (count != values.size()) return false;
    copy_bytes(values.data(), places, values.size_bytes());
    return true;
  }
  std::fill(values.begin(), values.end(), 0.0F);
  const std::byte* const numbers = places + std::size_t{count} * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t place = 0;
    std::memcpy(&place, places + i * sizeof(place), sizeof(place));
    if (place >= values.size()) return false;
    std::memcpy(&values[place], numbers + i * sizeof(float), sizeof(float));
  }
  return true;
}

}  // namespace

std::string_view to_string(WireFormat format) {
  for (const auto& [known, name] : kNames) {
    if (known == format) return name;
  }
  return "unknown";
}

std::optional<WireFormat> wire_format_of(std::string_view name) {
  for (const auto& [format, known] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::size_t most_encoded_bytes(WireFormat format, std::int64_t count) {
  const auto elements = static_cast<std::size_t>(count);
  switch (format) {
    case WireFormat::kPlain: return elements * sizeof(float);
    case WireFormat::kFloat16:
    case WireFormat::kBFloat16: return elements * sizeof(std::uint16_t);
    case WireFormat::kInt8: return elements + (elements + kInt8Block - 1) / kInt8Block * kScaleBytes;
    case WireFormat::kSparse: return kSparseHead + elements * sizeof(float);
  }
  return 0;
}

std::size_t encode(WireFormat format, std::span<const float> values, std::byte* to) {
  const auto count = static_cast<std::int64_t>(values.size());
  switch (format) {
    case WireFormat::kPlain: copy_bytes(to, values.data(), values.size_bytes()); break;
    case WireFormat::kFloat16: kernels::float16_from_float32(values.data(), to, count); break;
    case WireFormat::kBFloat16: kernels::bfloat16_from_float32(values.data(), to, count); break;
    case WireFormat::kInt8: return encode_int8(values, to);
    case WireFormat::kSparse: return encode_sparse(values, to);
  }
  return most_encoded_bytes(format, count);
}

std::optional<std::size_t> encoded_bytes(WireFormat format, std::int64_t count, std::span<const std::byte> begin) {
  if (format != WireFormat::kSparse) return most_encoded_bytes(format, count);
  if (begin.size() < kSparseHead) return std::nullopt;
  const auto [lists, values] = sparse_head(begin);
  const std::size_t each = sizeof(float) + (lists != 0 ? sizeof(std::uint32_t) : 0);
  return kSparseHead + std::size_t{values} * each;
}

bool decode(WireFormat format, std::span<const std::byte> bytes, std::span<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (encoded_bytes(format, count, bytes) != bytes.size()) return false;
  switch (format) {
    case WireFormat::kPlain: copy_bytes(values.data(), bytes.data(), bytes.size()); return true;
    case WireFormat::kFloat16: kernels::float32_from_float16(bytes.data(), values.data(), count); return true;
    case WireFormat::kBFloat16: kernels::float32_from_bfloat16(bytes.data(), values.data(), count); return true;
    case WireFormat::kInt8: decode_int8(bytes.data(), values); return true;
    case WireFormat::kSparse: return decode_sparse(bytes, values);
  }
  return false;
}

void keep_largest(std::span<float> values, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(values.size())) return;
  if (count <= 0) return std::fill(values.begin(), values.end(), 0.0F);
  std::vector<std::uint32_t> magnitudes;
  magnitudes.reserve(values.size());
  for (const float value : values) magnitudes.push_back(magnitude(value));
  const auto last = magnitudes.begin() + (count - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const std::uint32_t least = *last;
  // Of those as large as the least that is kept, the first ones stay.
  auto equal = count - std::count_if(magnitudes.begin(), last, [&](std::uint32_t other) { return other > least; });
  for (float& value : values) {
    const std::uint32_t own = magnitude(value);
    if (own > least) continue;
    if (own == least && equal > 0) {
      --equal;
    } else {
      value = 0;
    }
  }
}

}  // namespace convoy::comm

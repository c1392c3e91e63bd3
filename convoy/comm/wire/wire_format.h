// Wire formats: how float32 elements may be written more shortly between ranks. Sums stay float32.
//
// Every format gives a value back that it writes the same way again (a chunk is encoded over the same elements), so what
// is passed on by several ranks is rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace convoy::comm {

/// How elements are written.
enum class WireFormat : unsigned char {
  kPlain,     ///< as they are
  kFloat16,   ///< rounded to float16; finite values beyond 65504 become 65504
  kBFloat16,  ///< rounded to bfloat16
  kInt8,      ///< whole numbers of -127 to 127 times a scale for each 256 elements, a power of two
  kSparse     ///< places and values of what is not zero, or all values where that is shorter; nothing is rounded
};

/// What a recipe or caller asks for.
struct Compression {
  /// The format.
  WireFormat format = WireFormat::kPlain;
  /// With kSparse: the share of each input's elements that is kept, those of the largest magnitude ("top-k").
  double keep = 1;
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// Returns the name: "none", "float16", "bfloat16", "int8", "top_k".
std::string_view to_string(WireFormat format);

/// Returns the format of a name; nothing for an unknown one.
std::optional<WireFormat> wire_format_of(std::string_view name);

/// Elements of kInt8 that share a scale.
inline constexpr std::int64_t kInt8Block = 256;

/// Returns the most bytes that so many elements take; what they take, for all formats but kSparse.
std::size_t most_encoded_bytes(WireFormat format, std::int64_t count);

/// Writes elements to `to`, which has room for most_encoded_bytes; returns the bytes written.
/// kInt8 with a NaN or an infinite value among a scale's elements makes all of these NaN.
std::size_t encode(WireFormat format, std::span<const float> values, std::byte* to);

/// Returns how many bytes a message of so many elements has, from its first bytes; nothing while these do not say it.
std::optional<std::size_t> encoded_bytes(WireFormat format, std::int64_t count, std::span<const std::byte> begin);

/// Reads elements back; returns false when the bytes are none of this format.
bool decode(WireFormat format, std::span<const std::byte> bytes, std::span<float> values);

/// Sets all but the `count` elements of largest magnitude to zero; of equal ones the first stay. A NaN counts as the
/// largest of all.
void keep_largest(std::span<float> values, std::int64_t count);

}  // namespace convoy::comm

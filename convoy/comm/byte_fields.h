// Fields of messages as bytes: numbers in little-endian order, texts behind their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace convoy::comm {

/// Puts fields one after the other.
class FieldWriter {
 public:
  /// Adds a number of `width` bytes.
  void number(std::uint64_t value, int width = 8) {
    for (int i = 0; i < width; ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
  /// Adds a text and its length.
  void text(std::string_view value) {
    number(value.size(), 4);
    bytes_ += value;
  }
  /// Returns all fields so far.
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Takes fields one after the other and remembers whether all were there.
/// Ownership:  borrows the bytes
class FieldReader {
 public:
  /// Reads from the first byte on.
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}
  /// Returns a number of `width` bytes; 0 when it is not there.
  std::uint64_t number(std::size_t width = 8) {
    if (bytes_.size() < width) good_ = false;
    if (!good_) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    }
    bytes_.remove_prefix(width);
    return value;
  }
  /// Returns a text; "" when it is not there.
  std::string text() {
    const std::uint64_t length = number(4);
    if (length > bytes_.size()) good_ = false;
    if (!good_) return {};
    std::string value(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return value;
  }
  /// Returns whether every field was there, and nothing is left.
  bool finished() const { return good_ && bytes_.empty(); }
  /// Returns whether every field so far was there.
  bool good() const { return good_; }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace convoy::comm

// Hands out the bytes of a file that lies in memory, unpacked on the way when the file is gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace convoy::records {

/// Reads plain or gzip bytes front to back; which of the two they are is told by the first two bytes.
/// Ownership:  borrows the bytes while it lives
/// Threads:    one caller at a time
/// Errors:     kInvalidArgument naming the file when the packed bytes are damaged
class ByteReader {
 public:
  /// Starts at the first byte; `name` stands for the file in messages.
  ByteReader(std::string_view bytes, std::string name);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  /// Fills the buffer and returns how many bytes it got: fewer than asked for only where the file ends.
  std::size_t read(std::span<std::uint8_t> out);
  /// Proves that the file ends here: nothing follows, and the checksum of packed bytes is there and right.
  /// Errors:     kInvalidArgument when something follows or the checksum is cut off
  void expect_end();
  /// Returns how many (unpacked) bytes were handed out so far.
  std::uint64_t position() const { return position_; }
  /// Returns the file's name in messages.
  const std::string& name() const { return name_; }

 private:
  struct Inflater;
  std::size_t read_plain(std::span<std::uint8_t> out);
  std::size_t read_packed(std::span<std::uint8_t> out);

  std::string_view rest_;
  const std::string name_;
  std::uint64_t position_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null for a plain file
};

/// Returns the bytes packed as a gzip file, the same bytes for the same input.
std::string gzip(std::string_view bytes);

}  // namespace convoy::records

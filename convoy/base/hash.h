// Fast hashes (XXH3) for digests of data, parameters and files. Not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace convoy {

/// Returns the 64-bit XXH3 hash of the bytes.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

/// Returns the 128-bit XXH3 hash of the bytes as 32 hexadecimal digits.
std::string hash128_hex(std::string_view bytes);

/// A 128-bit XXH3 hash that is fed piece by piece: the same pieces joined give the same digest.
/// Threads:    one caller at a time
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  /// Adds bytes.
  void update(const void* data, std::size_t bytes);
  /// Adds text, without its length.
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// Returns the digest of everything added so far as 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy

#include "convoy/base/random.h"

#include <cmath>
#include <numbers>

#include "convoy/base/hash.h"

namespace convoy {
namespace {

// Words are hashed as little-endian bytes so that streams are the same on every machine.
std::uint64_t mix(std::uint64_t seed, std::uint64_t word) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(word >> (8 * i));
  return hash64(std::string_view(reinterpret_cast<const char*>(bytes), 8), seed);
}

}  // namespace

std::uint64_t stream_seed(StreamPurpose purpose, std::initializer_list<std::uint64_t> key) {
  std::uint64_t seed = mix(0, static_cast<std::uint64_t>(purpose));
  for (const std::uint64_t word : key) seed = mix(seed, word);
  return seed;
}

std::uint64_t stream_seed(std::uint64_t seed, std::string_view name) { return hash64(name, seed); }

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Rejects the few values that would make small results likelier (Lemire, 2019).
  __extension__ typedef unsigned __int128 Wide;
  Wide product = static_cast<Wide>(next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace convoy

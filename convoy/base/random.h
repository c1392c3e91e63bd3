// Random streams that belong to what they are for: a stream is made from its key, so nothing has to be saved.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace convoy {

/// What a stream is for. Streams of different purposes never share numbers. Never renumber: results depend on it.
enum class StreamPurpose : std::uint64_t {
  kInitialisation = 1,
  kSampleOrder = 2,
  kSplit = 3,
  kAugmentation = 4,
  kLayer = 5,
  kSynthesis = 6,
};

/// Mixes a purpose and words (seed, step, replica, micro-batch ...) into the seed of a stream.
std::uint64_t stream_seed(StreamPurpose purpose, std::initializer_list<std::uint64_t> key);

/// Mixes one more name into a seed, for example a layer's path.
std::uint64_t stream_seed(std::uint64_t seed, std::string_view name);

/// A SplitMix64 stream of random numbers.
/// Threads:    one caller at a time
/// Source:     Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014
class RandomStream {
 public:
  /// Starts the stream of this seed.
  explicit RandomStream(std::uint64_t seed) : state_(seed) {}
  /// Starts the stream of this purpose and key.
  RandomStream(StreamPurpose purpose, std::initializer_list<std::uint64_t> key) : state_(stream_seed(purpose, key)) {}

  /// Returns the next 64 random bits.
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, bound) without bias; bound must not be 0.
  std::uint64_t below(std::uint64_t bound);
  /// Returns a number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Returns a number of the standard normal distribution.
  double normal();

 private:
  std::uint64_t state_;
};

}  // namespace convoy

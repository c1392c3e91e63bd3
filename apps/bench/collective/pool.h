// Pool: the buffers that a collective is measured on, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/bench/team/team.h"

namespace convoy::bench {

/// A rank's two buffers of one measurement.
struct Slot {
  /// Where inputs lie, and outputs in place.
  std::byte* input = nullptr;
  /// Where other outputs lie.
  std::byte* output = nullptr;
  /// Every rank's input of this measurement; empty where ranks cannot write each other's memory.
  std::vector<std::byte*> all_inputs;
};

/// What a pool is for.
struct PoolOptions {
  /// The most bytes of an input and of an output.
  std::int64_t largest_bytes = 0;
  /// Whether the buffers lie in memory that all ranks can write.
  bool shared = true;
  /// Whether they rotate through more memory than the cache holds.
  bool cold = false;
};

/// Buffers that all contenders use in turn.
/// Collective: all ranks make it and ask for the same slots
class Pool {
 public:
  /// Takes the memory; it is written once, so that no measurement meets a new page.
  Pool(Team& team, const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Begins with buffers of these bytes, `batch` of which are used one right after the other; returns how many there are.
  std::int64_t begin(std::int64_t input_bytes, std::int64_t output_bytes, int batch);
  /// Returns the slot of a measurement.
  Slot slot(std::int64_t number) const;

 private:
  const PoolOptions options_;
  std::size_t bytes_ = 0;
  std::vector<std::byte*> starts_;
  std::byte* own_ = nullptr;
  bool mapped_ = false;
  std::int64_t output_offset_ = 0;
  std::int64_t stride_ = 0;
  std::int64_t slots_ = 1;
};

}  // namespace convoy::bench

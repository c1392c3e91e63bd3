// The batch fit: how much memory a local batch takes, from two that were measured, and the largest that fits.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/base/files.h"

namespace convoy::train {

/// Memory that a process may take, and who says so.
struct MemoryLimit {
  /// How much.
  std::int64_t bytes = 0;
  /// "option", "cgroup" or "machine".
  std::string source;
};

/// Returns the smallest limit of this process's control groups (versions 1 and 2), or the machine's memory.
/// Errors:     kIo when the system does not tell its memory
MemoryLimit read_memory_limit(Files& files);

/// Returns the memory that the machine could give now without taking it from anybody; 0 where it does not tell.
std::int64_t read_available_memory(Files& files);

/// What one forward and backward pass takes beyond what was there before, as a line over samples.
struct BatchFit {
  /// For no sample: gradients, workspaces.
  double base_bytes = 0.0;
  /// For each sample.
  double bytes_per_sample = 0.0;

  /// Returns what a pass takes.
  double pass_bytes(std::int64_t samples) const { return base_bytes + bytes_per_sample * static_cast<double>(samples); }
};

/// A pass that was measured.
struct PassPoint {
  /// Its samples.
  std::int64_t samples = 0;
  /// What it took at its peak, beyond what was there before.
  std::int64_t bytes = 0;
};

/// Returns the line through two passes of different sizes.
/// Errors:     kInternal when the sizes are equal
BatchFit fit_batch(const PassPoint& one, const PassPoint& other);

/// Returns the most samples whose pass takes at most `room_bytes`; 0 when not even one fits.
std::int64_t largest_batch(const BatchFit& fit, double room_bytes);

}  // namespace convoy::train

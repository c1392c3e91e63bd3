// Puts libtorch's CPU tensors into the process's shared arena, so that peers read gradients where autograd left them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::params {

/// Makes libtorch allocate CPU tensors of at least `smallest` bytes in comm::process_arena(); smaller ones and those
/// that find no room come from the heap. Tensors made before keep their memory. Later calls change nothing.
void use_shared_arena(std::size_t smallest = 512);

/// What libtorch's CPU tensors took since use_shared_arena, arena and heap together.
struct TensorMemory {
  /// Bytes in use now.
  std::int64_t now_bytes = 0;
  /// The most bytes in use at once since the last reset.
  std::int64_t peak_bytes = 0;
};

/// Returns the tensors' memory.
/// Threads:    any
TensorMemory tensor_memory();

/// Starts a new search for the peak, from what is in use now.
void reset_tensor_memory_peak();

}  // namespace convoy::params

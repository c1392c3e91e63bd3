// Puts libtorch's CPU tensors into the process's shared arena, so that peers read gradients where autograd left them.
#pragma once

#include <torch/types.h>

#include <cstddef>

#include "convoy/observe/memory_meter.h"

namespace convoy::params {

/// Makes libtorch allocate CPU tensors of at least `smallest` bytes in comm::process_arena(); smaller ones and those
/// that find no room come from the heap. Tensors made before keep their memory. Later calls change nothing. Each tensor's
/// bytes are counted in observe::process_memory() under observe::MemoryScope::current().
void use_shared_arena(std::size_t smallest = 512);

/// Counts a tensor's memory under another category from now on, whoever frees it; returns false, and does nothing,
/// when its memory did not come from this allocator. All tensors over the same memory go along.
/// Threads:    one caller at a time for one memory
bool retag(const torch::Tensor& tensor, observe::MemoryCategory category);

}  // namespace convoy::params

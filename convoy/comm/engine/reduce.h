// Combines elements of several sources along a postfix program: the arithmetic of every reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "convoy/base/dtype.h"

namespace convoy::comm {

/// The deepest program that combine() takes.
inline constexpr int kMaxReduceDepth = 24;

/// Returns whether the engine can reduce elements of this type so: everything but the mean of integers and any
/// combination of uint8.
bool can_reduce(DType dtype, ReduceOp reduce);

/// Combines element by element: number k >= 0 of the program pushes sources[k], spec::kAdd combines the two values on
/// top (the lower one first). With a divisor above 1 the result is divided by it (floating point types only).
/// Sums and means add, with 64-bit and 32-bit integers wrapping round; min and max hand on a NaN. The bits of the
/// result depend on the program alone: not on alignment, on vector width or on how a range is cut into calls. Shapes:
/// every source and the target hold `count` elements, at any alignment; the target may be a source Errors:
/// kNotSupported for a program that is too deep, and where can_reduce says no
void combine(DType dtype, ReduceOp reduce, std::span<const int> program, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count, int divisor);

}  // namespace convoy::comm

// Combines elements of several sources along a postfix program: the arithmetic of every reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "convoy/base/dtype.h"

namespace convoy::comm {

/// Returns whether the engine can reduce elements of this type so: everything but the mean of integers and any
/// combination of uint8.
bool can_reduce(DType dtype, ReduceOp reduce);

/// Returns whether a value of this type that is reduced further later must not be stored between: it would be rounded
/// each time. So it is with sums and products of 16-bit types, which are computed in float32.
bool rounds_between_reductions(DType dtype, ReduceOp reduce);

/// Combines element by element: number k >= 0 of the program pushes sources[k], spec::kAdd combines the two values on
/// top (the lower one first). With a divisor above 1 the result is divided by it (floating point types only).
/// Sums, means and products of bfloat16 and float16 are computed in float32 and rounded once, to nearest even. Sums and
/// products of integers wrap round. Min and max hand on a NaN, and take -0 to be smaller than 0.
/// The bits of the result depend on the program alone: not on alignment, on vector width or on how a range is cut into
/// calls. (Where several NaNs meet, which one's payload remains is not defined.)
/// `stream` stores the result past the caches unless it is written over a source: it pays where the result is too large
/// to stay in them. `also` is a second place for the result, or null.
/// Shapes:     every source and the targets hold `count` elements, at any alignment; a target may be a source
/// Errors:     kNotSupported for a program with more open values than kernels::kMaxDepth, and where can_reduce says no
void combine(DType dtype, ReduceOp reduce, std::span<const int> program, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count, int divisor, bool stream = false, std::byte* also = nullptr);

}  // namespace convoy::comm

// A reduction's postfix program over sources, grouped into the steps that the kernels evaluate in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "convoy/base/dtype.h"

namespace convoy::comm::kernels {

/// The most values that are open at once in a program that the kernels take.
inline constexpr int kMaxDepth = 24;

/// What a step reads from memory: nothing, a, (a + b), or ((a + b) + (c + d)).
enum class Take : unsigned char { kNothing, kOne, kPair, kQuad };

/// What a step does with it. The value on top is in registers, those below lie on a stack in the nearest cache.
enum class Put : unsigned char {
  kPush,  ///< It becomes the value on top.
  kFold,  ///< It is combined with the value on top: top + taken.
  kJoin   ///< Nothing is taken; the two values on top are combined: lower + top.
};

/// One step of a reduction. The first one of every list pushes.
struct Step {
  /// What it reads.
  Take take = Take::kNothing;
  /// What it does with it.
  Put put = Put::kJoin;
  /// Where the first element of each taken source lies.
  const std::byte* from[4] = {};
};

/// Returns the steps of a program; each combines the same values in the same order as the program.
/// Errors:     kInternal for a program that takes what is not there or leaves other than one value; kNotSupported for
///             one with more than kMaxDepth open values
std::vector<Step> steps_of(std::span<const int> program, std::span<const std::byte* const> sources);

/// One reduction: the steps, and where its result goes.
struct Reduction {
  /// How values are combined.
  ReduceOp reduce = ReduceOp::kSum;
  /// Which values, in which order.
  std::span<const Step> steps;
  /// The first element of the result.
  std::byte* target = nullptr;
  /// How many elements.
  std::int64_t count = 0;
  /// The result is divided by it; 1 for everything but a mean.
  int divisor = 1;
  /// Whether to store past the caches, which pays for results that are larger than they are.
  bool stream = false;
  /// A second place for the result, or null.
  std::byte* also = nullptr;
};

/// The kernels, one for each element type: they write the reduction's `count` elements to its target.
/// 16-bit types are widened to float32 when they are read, combined and divided in float32, and rounded once, to the
/// nearest and of two equally near ones to the even value, when the result is stored.
/// The bits depend on the program alone: not on alignment, vector width, or how a range is cut into calls. (Of two NaNs
/// that are added, either may give the result its payload.)
/// Shapes:     sources and target hold `count` elements, at any alignment; the target may be a source
void reduce_float32(const Reduction& reduction);
/// The same for float64.
void reduce_float64(const Reduction& reduction);
/// The same for bfloat16.
void reduce_bfloat16(const Reduction& reduction);
/// The same for float16.
void reduce_float16(const Reduction& reduction);
/// The same for int32; sums and products wrap round, there is no division.
void reduce_int32(const Reduction& reduction);
/// The same for int64; sums and products wrap round, there is no division.
void reduce_int64(const Reduction& reduction);

/// Copies bytes without leaving the copy in the caches (as memmove where source and target overlap).
void copy_past_caches(std::byte* target, const std::byte* source, std::size_t bytes);

/// Returns the size of this processor's largest cache, or a usual one where it is not known.
std::int64_t largest_cache_bytes();

}  // namespace convoy::comm::kernels

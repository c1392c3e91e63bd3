// What can be reduced, and the way to the kernel of an element type.
#include "convoy/comm/engine/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/comm/kernels/steps.h"

namespace convoy::comm {

bool can_reduce(DType dtype, ReduceOp reduce) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kFloat16: return true;
    case DType::kInt32:
    case DType::kInt64: return reduce != ReduceOp::kMean;
    case DType::kUInt8: return false;
  }
  return false;
}

bool rounds_between_reductions(DType dtype, ReduceOp reduce) {
  const bool half = dtype == DType::kBFloat16 || dtype == DType::kFloat16;
  return half && reduce != ReduceOp::kMin && reduce != ReduceOp::kMax;
}

void combine(DType dtype, ReduceOp reduce, std::span<const int> program, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count, int divisor, bool stream, std::byte* also) {
  const std::vector<kernels::Step> steps = kernels::steps_of(program, sources);
  if (count == 0) return;
  if (program.size() == 1 && divisor <= 1) {
    const std::size_t bytes = static_cast<std::size_t>(count) * element_bytes(dtype);
    if (also != nullptr) std::memmove(also, steps[0].from[0], bytes);
    if (steps[0].from[0] == target) return;
    if (stream) return kernels::copy_past_caches(target, steps[0].from[0], bytes);
    std::memmove(target, steps[0].from[0], bytes);
    return;
  }
  const bool divides = divisor > 1;
  if (!can_reduce(dtype, divides ? ReduceOp::kMean : reduce)) {
    throw Error(ErrorCode::kNotSupported, fmt::format("no {} of {} elements", to_string(reduce), to_string(dtype)));
  }
  // A target that has just been read lies in the caches already.
  const bool apart = std::find(sources.begin(), sources.end(), target) == sources.end();
  const kernels::Reduction reduction{reduce, steps, target, count, divides ? divisor : 1, stream && apart, also};
  switch (dtype) {
    case DType::kFloat32: return kernels::reduce_float32(reduction);
    case DType::kFloat64: return kernels::reduce_float64(reduction);
    case DType::kInt32: return kernels::reduce_int32(reduction);
    case DType::kInt64: return kernels::reduce_int64(reduction);
    case DType::kBFloat16: return kernels::reduce_bfloat16(reduction);
    case DType::kFloat16: return kernels::reduce_float16(reduction);
    case DType::kUInt8: break;
  }
}

}  // namespace convoy::comm

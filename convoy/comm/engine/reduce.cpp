// Elementwise kernels, and the walk along a program in blocks that stay in the nearest cache.
#include "convoy/comm/engine/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "convoy/base/error.h"
#include "convoy/spec/replica_tree.h"

// Each kernel is compiled for several instruction sets, one of which is chosen at start. The choice does not change a
// bit: the loops have one operation per element, and products are never fused into sums (-ffp-contract=off).
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(CONVOY_SANITIZED)
#define CONVOY_KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CONVOY_KERNEL
#endif

// The target is either apart from a source or exactly the same memory, so that no element depends on another one.
#if defined(__clang__)
#define CONVOY_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CONVOY_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace convoy::comm::kernels {

template <typename T>
inline T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// A comparison with itself finds a NaN.
template <typename T>
inline T min_of(T a, T b) {
  return (a < b || a != a) ? a : b;
}

template <typename T>
inline T max_of(T a, T b) {
  return (a > b || a != a) ? a : b;
}

#define CONVOY_COMBINE_KERNEL(name, type, function)                                      \
  CONVOY_KERNEL void name(const type* a, const type* b, type* out, std::int64_t count) { \
    CONVOY_INDEPENDENT                                                                   \
    for (std::int64_t i = 0; i < count; ++i) out[i] = function(a[i], b[i]);              \
  }

#define CONVOY_DIVIDE_KERNEL(name, type)                                                \
  CONVOY_KERNEL void name(const type* a, type divisor, type* out, std::int64_t count) { \
    CONVOY_INDEPENDENT                                                                  \
    for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] / divisor;                   \
  }

CONVOY_COMBINE_KERNEL(sum_float32, float, sum_of)
CONVOY_COMBINE_KERNEL(min_float32, float, min_of)
CONVOY_COMBINE_KERNEL(max_float32, float, max_of)
CONVOY_COMBINE_KERNEL(sum_float64, double, sum_of)
CONVOY_COMBINE_KERNEL(min_float64, double, min_of)
CONVOY_COMBINE_KERNEL(max_float64, double, max_of)
CONVOY_COMBINE_KERNEL(sum_int32, std::int32_t, sum_of)
CONVOY_COMBINE_KERNEL(min_int32, std::int32_t, min_of)
CONVOY_COMBINE_KERNEL(max_int32, std::int32_t, max_of)
CONVOY_COMBINE_KERNEL(sum_int64, std::int64_t, sum_of)
CONVOY_COMBINE_KERNEL(min_int64, std::int64_t, min_of)
CONVOY_COMBINE_KERNEL(max_int64, std::int64_t, max_of)
CONVOY_DIVIDE_KERNEL(divide_float32, float)
CONVOY_DIVIDE_KERNEL(divide_float64, double)

}  // namespace convoy::comm::kernels

namespace convoy::comm {
namespace {

constexpr std::size_t kBlockBytes = 4096;

template <typename T>
struct Kernels {
  void (*combine)(const T* a, const T* b, T* out, std::int64_t count) = nullptr;
  void (*divide)(const T* a, T divisor, T* out, std::int64_t count) = nullptr;
};

template <typename T>
Kernels<T> choose(ReduceOp reduce, void (*sum)(const T*, const T*, T*, std::int64_t),
                  void (*min)(const T*, const T*, T*, std::int64_t),
                  void (*max)(const T*, const T*, T*, std::int64_t)) {
  Kernels<T> chosen;
  chosen.combine = reduce == ReduceOp::kMin ? min : reduce == ReduceOp::kMax ? max : sum;
  return chosen;
}

template <typename T>
bool aligned(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignof(T) == 0;
}

// Values of one block on the program's stack: each is a source where it lies, or memory of the stack's own.
template <typename T>
class BlockStack {
 public:
  static constexpr std::int64_t kElements = kBlockBytes / sizeof(T);

  void push(const std::byte* source, std::int64_t count) {
    if (aligned<T>(source)) {
      values_[depth_] = reinterpret_cast<const T*>(source);
    } else {
      std::memcpy(own_[depth_], source, static_cast<std::size_t>(count) * sizeof(T));
      values_[depth_] = own_[depth_];
    }
    ++depth_;
  }
  // Combines the two values on top into `out`, or into memory of the stack when there is none.
  void combine(const Kernels<T>& kernels, T* out, std::int64_t count) {
    --depth_;
    T* const result = out != nullptr ? out : own_[depth_ - 1];
    kernels.combine(values_[depth_ - 1], values_[depth_], result, count);
    values_[depth_ - 1] = result;
  }
  const T* pop() { return values_[--depth_]; }

 private:
  alignas(64) T own_[kMaxReduceDepth][kElements];
  const T* values_[kMaxReduceDepth];
  int depth_ = 0;
};

// Hands a block's value to the target, divided where it has to be.
template <typename T>
void store_block(const Kernels<T>& kernels, const T* value, std::byte* target, std::int64_t count, int divisor) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  if (divisor > 1 && !aligned<T>(target)) {
    alignas(64) T quotient[BlockStack<T>::kElements];
    kernels.divide(value, static_cast<T>(divisor), quotient, count);
    std::memcpy(target, quotient, bytes);
  } else if (divisor > 1) {
    kernels.divide(value, static_cast<T>(divisor), reinterpret_cast<T*>(target), count);
  } else if (reinterpret_cast<const std::byte*>(value) != target) {
    std::memmove(target, value, bytes);
  }
}

template <typename T>
void run(const Kernels<T>& kernels, std::span<const int> program, std::span<const std::byte* const> sources,
         std::byte* target, std::int64_t count, int divisor) {
  BlockStack<T> stack;
  for (std::int64_t begin = 0; begin < count; begin += BlockStack<T>::kElements) {
    const std::int64_t n = std::min(BlockStack<T>::kElements, count - begin);
    const std::size_t skip = static_cast<std::size_t>(begin) * sizeof(T);
    std::byte* const out = target + skip;
    for (std::size_t step = 0; step < program.size(); ++step) {
      if (program[step] != spec::kAdd) {
        stack.push(sources[static_cast<std::size_t>(program[step])] + skip, n);
        continue;
      }
      const bool last = step + 1 == program.size();
      stack.combine(kernels, last && aligned<T>(out) ? reinterpret_cast<T*>(out) : nullptr, n);
    }
    store_block(kernels, stack.pop(), out, n, divisor);
  }
}

void check_program(std::span<const int> program, std::size_t sources) {
  int depth = 0;
  for (const int step : program) {
    CONVOY_CHECK(step == spec::kAdd ? depth >= 2 : step >= 0 && static_cast<std::size_t>(step) < sources,
                 "a reduction's program takes what is not there");
    depth += step == spec::kAdd ? -1 : 1;
    if (depth > kMaxReduceDepth) {
      throw Error(ErrorCode::kNotSupported, fmt::format("a reduction with more than {} open values", kMaxReduceDepth));
    }
  }
  CONVOY_CHECK(depth == 1, "a reduction's program leaves one value");
}

}  // namespace

bool can_reduce(DType dtype, ReduceOp reduce) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64: return true;
    case DType::kInt32:
    case DType::kInt64: return reduce != ReduceOp::kMean;
    case DType::kUInt8: return false;
  }
  return false;
}

void combine(DType dtype, ReduceOp reduce, std::span<const int> program, std::span<const std::byte* const> sources,
             std::byte* target, std::int64_t count, int divisor) {
  check_program(program, sources.size());
  if (program.size() == 1 && divisor <= 1) {
    const std::byte* const source = sources[static_cast<std::size_t>(program[0])];
    if (source != target && count > 0)
      std::memmove(target, source, static_cast<std::size_t>(count) * element_bytes(dtype));
    return;
  }
  if (!can_reduce(dtype, reduce) || (divisor > 1 && dtype != DType::kFloat32 && dtype != DType::kFloat64)) {
    throw Error(ErrorCode::kNotSupported, fmt::format("no {} of {} elements", to_string(reduce), to_string(dtype)));
  }
  switch (dtype) {
    case DType::kFloat32: {
      auto chosen = choose<float>(reduce, kernels::sum_float32, kernels::min_float32, kernels::max_float32);
      chosen.divide = kernels::divide_float32;
      return run(chosen, program, sources, target, count, divisor);
    }
    case DType::kFloat64: {
      auto chosen = choose<double>(reduce, kernels::sum_float64, kernels::min_float64, kernels::max_float64);
      chosen.divide = kernels::divide_float64;
      return run(chosen, program, sources, target, count, divisor);
    }
    case DType::kInt32: {
      auto chosen = choose<std::int32_t>(reduce, kernels::sum_int32, kernels::min_int32, kernels::max_int32);
      return run(chosen, program, sources, target, count, 1);
    }
    case DType::kInt64: {
      auto chosen = choose<std::int64_t>(reduce, kernels::sum_int64, kernels::min_int64, kernels::max_int64);
      return run(chosen, program, sources, target, count, 1);
    }
    case DType::kUInt8: break;
  }
}

}  // namespace convoy::comm

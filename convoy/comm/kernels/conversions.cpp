// The conversions: compiled for several instruction sets, the best one is chosen when one first runs.
#include "convoy/comm/kernels/conversions.h"

#include "convoy/comm/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convoy/comm/kernels/conversions.cpp"  // this file, once for each instruction set
#include <hwy/foreach_target.h>

#include <limits>

#include "convoy/comm/kernels/half_elements_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

// Keeps finite values finite in float16.
struct Saturated {
  template <class D, class V>
  static HWY_INLINE V of(D d, V value) {
    const auto largest = hn::Set(d, 65504.0F);
    const auto size = hn::Abs(value);
    const auto beyond =
        hn::And(hn::Gt(size, largest), hn::Lt(size, hn::Set(d, std::numeric_limits<float>::infinity())));
    return hn::IfThenElse(beyond, hn::CopySign(largest, value), value);
  }
};

// Hands values on as they are.
struct AsIs {
  template <class D, class V>
  static HWY_INLINE V of(D, V value) {
    return value;
  }
};

template <class From, class To, class Change, class D>
HWY_INLINE std::int64_t convert_with(D d, const std::byte* from, std::byte* to, std::int64_t done, std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; done + lanes <= count; done += lanes) {
    const auto at = static_cast<std::size_t>(done);
    To::write(d, Change::of(d, From::read(d, from + at * From::kBytes)), to + at * To::kBytes);
  }
  return done;
}

template <class From, class To, class Change>
HWY_INLINE void convert(const std::byte* from, std::byte* to, std::int64_t count) {
  const std::int64_t done = convert_with<From, To, Change>(hn::ScalableTag<float>(), from, to, 0, count);
  convert_with<From, To, Change>(hn::CappedTag<float, 1>(), from, to, done, count);
}

void to_float16(const std::byte* from, std::byte* to, std::int64_t count) {
  convert<Plain<float>, Float16, Saturated>(from, to, count);
}
void of_float16(const std::byte* from, std::byte* to, std::int64_t count) {
  convert<Float16, Plain<float>, AsIs>(from, to, count);
}
void to_bfloat16(const std::byte* from, std::byte* to, std::int64_t count) {
  convert<Plain<float>, BFloat16, AsIs>(from, to, count);
}
void of_bfloat16(const std::byte* from, std::byte* to, std::int64_t count) {
  convert<BFloat16, Plain<float>, AsIs>(from, to, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convoy::comm::kernels {
namespace {

HWY_EXPORT(to_float16);
HWY_EXPORT(of_float16);
HWY_EXPORT(to_bfloat16);
HWY_EXPORT(of_bfloat16);

const std::byte* bytes_of(const float* values) { return reinterpret_cast<const std::byte*>(values); }
std::byte* bytes_of(float* values) { return reinterpret_cast<std::byte*>(values); }

}  // namespace

void float16_from_float32(const float* from, std::byte* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(to_float16)(bytes_of(from), to, count);
}
void float32_from_float16(const std::byte* from, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(of_float16)(from, bytes_of(to), count);
}
void bfloat16_from_float32(const float* from, std::byte* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(to_bfloat16)(bytes_of(from), to, count);
}
void float32_from_bfloat16(const std::byte* from, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(of_bfloat16)(from, bytes_of(to), count);
}

}  // namespace convoy::comm::kernels
#endif

// How vectors of 16-bit elements are widened to float32 and rounded back, compiled once for each instruction set.
#if defined(CONVOY_COMM_KERNELS_HALF_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVOY_COMM_KERNELS_HALF_ELEMENTS_INL_H
#undef CONVOY_COMM_KERNELS_HALF_ELEMENTS_INL_H
#else
#define CONVOY_COMM_KERNELS_HALF_ELEMENTS_INL_H
#endif

#include "convoy/comm/kernels/elements_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

/// bfloat16: the upper half of a float32.
struct BFloat16 {
  /// What is computed with.
  using Lane = float;
  /// The size of an element in memory.
  static constexpr std::size_t kBytes = 2;
  /// Reads a vector of elements.
  template <class D>
  static HWY_INLINE hn::VFromD<D> read(D d, const std::byte* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::uint32_t, D> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, read_vector<std::uint16_t>(d16, from))));
  }
  /// Stores a vector of elements.
  template <class D>
  static HWY_INLINE void write(D d, hn::VFromD<D> value, std::byte* to) {
    write_vector<std::uint16_t>(hn::Rebind<std::uint16_t, D>(), rounded(d, value), to);
  }
  /// Stores a vector of elements past the caches.
  template <class D>
  static HWY_INLINE void stream(D d, hn::VFromD<D> value, std::byte* to) {
    stream_vector<std::uint16_t>(hn::Rebind<std::uint16_t, D>(), rounded(d, value), to);
  }
  /// Returns the bits of the nearest elements.
  template <class D>
  static HWY_INLINE auto rounded([[maybe_unused]] D d, hn::VFromD<D> value) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::uint32_t, D> d32;
    const auto bits = hn::BitCast(d32, value);
    const auto upper = hn::ShiftRight<16>(bits);
    const auto even = hn::And(upper, hn::Set(d32, 1));
    const auto nearest = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d32, 0x7fff)), even));
    const auto is_nan = hn::RebindMask(d32, hn::IsNaN(value));
    const auto result = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(d32, 0x40)), nearest);
    return hn::TruncateTo(d16, result);
  }
};

/// float16: the steps of convoy/base/half.h on vectors. Processors with instructions for it use them: the bits are
/// the same.
struct Float16 {
  /// What is computed with.
  using Lane = float;
  /// The size of an element in memory.
  static constexpr std::size_t kBytes = 2;
  /// Reads a vector of elements.
  template <class D>
  static HWY_INLINE hn::VFromD<D> read(D d, const std::byte* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const auto half = read_vector<std::uint16_t>(d16, from);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::PromoteTo(d, hn::BitCast(df16, half));
#else
    const hn::Rebind<std::uint32_t, D> d32;
    const hn::Rebind<std::int32_t, D> di32;
    const auto bits = hn::PromoteTo(d32, half);
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d32, 0x8000)));
    const auto signed_magnitude = hn::BitCast(di32, magnitude);
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d32, 112U << 23));
    const auto tiny = hn::BitCast(d32, hn::Mul(hn::ConvertTo(d, signed_magnitude), hn::Set(d, 0x1p-24F)));
    const auto endless = hn::Add(normal, hn::Set(d32, 112U << 23));
    const auto is_tiny = hn::RebindMask(d32, hn::Lt(signed_magnitude, hn::Set(di32, 0x400)));
    const auto is_endless = hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, 0x7bff)));
    const auto is_nan = hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, 0x7c00)));
    const auto finite = hn::IfThenElse(is_tiny, tiny, normal);
    const auto any = hn::IfThenElse(is_endless, endless, finite);
    const auto quiet = hn::IfThenElseZero(is_nan, hn::Set(d32, 0x400000));
    return hn::BitCast(d, hn::Or(hn::Or(any, quiet), sign));
#endif
  }
  /// Stores a vector of elements.
  template <class D>
  static HWY_INLINE void write(D d, hn::VFromD<D> value, std::byte* to) {
    write_vector<std::uint16_t>(hn::Rebind<std::uint16_t, D>(), rounded(d, value), to);
  }
  /// Stores a vector of elements past the caches.
  template <class D>
  static HWY_INLINE void stream(D d, hn::VFromD<D> value, std::byte* to) {
    stream_vector<std::uint16_t>(hn::Rebind<std::uint16_t, D>(), rounded(d, value), to);
  }
  /// Returns the bits of the nearest elements.
  template <class D>
  static HWY_INLINE auto rounded([[maybe_unused]] D d, hn::VFromD<D> value) {
    const hn::Rebind<std::uint16_t, D> d16;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::BitCast(d16, hn::DemoteTo(df16, value));
#else
    const hn::Rebind<std::uint32_t, D> d32;
    const hn::Rebind<std::int32_t, D> di32;
    const auto bits = hn::BitCast(d32, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffff));
    const auto signed_magnitude = hn::BitCast(di32, magnitude);
    const auto even = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 1));
    const auto rounding = hn::Add(hn::Set(d32, 0xfffU - (112U << 23)), even);
    const auto normal = hn::ShiftRight<13>(hn::Add(magnitude, rounding));
    const auto shifted = hn::BitCast(d32, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F)));
    const auto tiny = hn::Sub(shifted, hn::Set(d32, 0x3f000000));
    const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d32, 0x3ff));
    const auto nan = hn::Or(payload, hn::Set(d32, 0x7e00));
    const auto is_tiny = hn::RebindMask(d32, hn::Lt(signed_magnitude, hn::Set(di32, 0x38800000)));
    const auto is_endless = hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, 0x477fefff)));
    const auto is_nan = hn::RebindMask(d32, hn::Gt(signed_magnitude, hn::Set(di32, 0x7f800000)));
    const auto finite = hn::IfThenElse(is_tiny, tiny, normal);
    const auto number = hn::IfThenElse(is_endless, hn::Set(d32, 0x7c00), finite);
    const auto result = hn::Or(hn::IfThenElse(is_nan, nan, number), sign);
    return hn::TruncateTo(d16, result);
#endif
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#endif

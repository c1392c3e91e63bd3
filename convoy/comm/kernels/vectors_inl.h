// The vectors that one turn of a kernel's loop works on, compiled once for each instruction set.
#if defined(CONVOY_COMM_KERNELS_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVOY_COMM_KERNELS_VECTORS_INL_H
#undef CONVOY_COMM_KERNELS_VECTORS_INL_H
#else
#define CONVOY_COMM_KERNELS_VECTORS_INL_H
#endif

#include "convoy/comm/kernels/elements_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

/// What one turn of the loop works on: a vector of elements of kind E ...
template <class E, class D>
struct Single {
  /// A vector.
  using V = hn::VFromD<D>;
  /// How many vectors it holds.
  static constexpr std::size_t kVectors = 1;
  /// The vector.
  V a;
  /// Reads elements.
  static HWY_INLINE Single read(D d, const std::byte* from) { return {E::read(d, from)}; }
  /// Stores elements.
  HWY_INLINE void write(D d, std::byte* to) const { E::write(d, a, to); }
  /// Stores elements past the caches, in whole vectors.
  HWY_INLINE void stream(D d, std::byte* to) const { E::stream(d, a, to); }
  /// Loads from the stack.
  static HWY_INLINE Single load(D d, const typename E::Lane* from) { return {hn::Load(d, from)}; }
  /// Stores on the stack.
  HWY_INLINE void store(D d, typename E::Lane* to) const { hn::Store(a, d, to); }
  /// Combines with the value above this one.
  template <class Op>
  HWY_INLINE Single with(Single other) const {
    return {Op::of(a, other.a)};
  }
  /// Divides.
  HWY_INLINE Single divided(V by) const { return {hn::Div(a, by)}; }
};

/// ... or four of them, so that the cost of deciding what a step does is spread.
template <class E, class D>
struct Fourfold {
  /// A vector.
  using V = hn::VFromD<D>;
  /// How many vectors it holds.
  static constexpr std::size_t kVectors = 4;
  /// The vectors in the order of memory.
  V a, b, c, d;
  /// Reads elements.
  static HWY_INLINE Fourfold read(D tag, const std::byte* from) {
    const std::size_t step = hn::Lanes(tag) * E::kBytes;
    return {E::read(tag, from), E::read(tag, from + step), E::read(tag, from + 2 * step),
            E::read(tag, from + 3 * step)};
  }
  /// Stores elements.
  HWY_INLINE void write(D tag, std::byte* to) const {
    const std::size_t step = hn::Lanes(tag) * E::kBytes;
    E::write(tag, a, to);
    E::write(tag, b, to + step);
    E::write(tag, c, to + 2 * step);
    E::write(tag, d, to + 3 * step);
  }
  /// Stores elements past the caches.
  HWY_INLINE void stream(D tag, std::byte* to) const {
    const std::size_t step = hn::Lanes(tag) * E::kBytes;
    E::stream(tag, a, to);
    E::stream(tag, b, to + step);
    E::stream(tag, c, to + 2 * step);
    E::stream(tag, d, to + 3 * step);
  }
  /// Loads from the stack.
  static HWY_INLINE Fourfold load(D tag, const typename E::Lane* from) {
    const std::size_t step = hn::Lanes(tag);
    return {hn::Load(tag, from), hn::Load(tag, from + step), hn::Load(tag, from + 2 * step),
            hn::Load(tag, from + 3 * step)};
  }
  /// Stores on the stack.
  HWY_INLINE void store(D tag, typename E::Lane* to) const {
    const std::size_t step = hn::Lanes(tag);
    hn::Store(a, tag, to);
    hn::Store(b, tag, to + step);
    hn::Store(c, tag, to + 2 * step);
    hn::Store(d, tag, to + 3 * step);
  }
  /// Combines with the value above this one.
  template <class Op>
  HWY_INLINE Fourfold with(const Fourfold& other) const {
    return {Op::of(a, other.a), Op::of(b, other.b), Op::of(c, other.c), Op::of(d, other.d)};
  }
  /// Divides.
  HWY_INLINE Fourfold divided(V by) const { return {hn::Div(a, by), hn::Div(b, by), hn::Div(c, by), hn::Div(d, by)}; }
};

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#endif

// How two values are combined, compiled once for each instruction set.
#if defined(CONVOY_COMM_KERNELS_OPERATIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVOY_COMM_KERNELS_OPERATIONS_INL_H
#undef CONVOY_COMM_KERNELS_OPERATIONS_INL_H
#else
#define CONVOY_COMM_KERNELS_OPERATIONS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Min and max hand on a NaN (of two, the lower one's) and take -0 to be smaller than 0: so their result does not depend
// on the order, but for the payload of a NaN.

/// Adds.
struct Sum {
  /// Combines the lower value `a` with the upper value `b`.
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Add(a, b);
  }
};

/// Multiplies.
struct Product {
  /// Combines the lower value `a` with the upper value `b`.
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return a * b;
  }
};

/// The smaller value.
struct Min {
  /// Combines the lower value `a` with the upper value `b`.
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      // Equal values differ in the sign at most, when both are zeros: the bits of both together have it.
      const V unequal = hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
      return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), unequal);
    } else {
      return hn::IfThenElse(hn::Lt(a, b), a, b);
    }
  }
};

/// The larger value.
struct Max {
  /// Combines the lower value `a` with the upper value `b`.
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      const V unequal = hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
      return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), unequal);
    } else {
      return hn::IfThenElse(hn::Gt(a, b), a, b);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#endif

// How vectors of elements are read and stored, compiled once for each instruction set.
#if defined(CONVOY_COMM_KERNELS_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CONVOY_COMM_KERNELS_ELEMENTS_INL_H
#undef CONVOY_COMM_KERNELS_ELEMENTS_INL_H
#else
#define CONVOY_COMM_KERNELS_ELEMENTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Reads a vector of T from any address. A tag of one lane, for the last elements, goes through memory of its own.
template <typename T, class D>
HWY_INLINE hn::VFromD<D> read_vector(D d, const std::byte* from) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    alignas(16) T value;
    std::memcpy(&value, from, sizeof(T));
    return hn::LoadU(d, &value);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
}

/// Writes a vector of T to any address.
template <typename T, class D>
HWY_INLINE void write_vector(D d, hn::VFromD<D> value, std::byte* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    alignas(16) T lane;
    hn::StoreU(value, d, &lane);
    std::memcpy(to, &lane, sizeof(T));
  } else {
    hn::StoreU(value, d, reinterpret_cast<T*>(to));
  }
}

/// Writes a vector of T past the caches, to an address that is a multiple of its size. Vectors that processors do not
/// store so go the usual way.
template <typename T, class D>
HWY_INLINE void stream_vector(D d, hn::VFromD<D> value, std::byte* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) < 16) {
    write_vector<T>(d, value, to);
  } else {
    hn::Stream(value, d, reinterpret_cast<T*>(to));
  }
}

/// Elements that are computed with as they are.
template <typename T>
struct Plain {
  /// What is computed with.
  using Lane = T;
  /// The size of an element in memory.
  static constexpr std::size_t kBytes = sizeof(T);
  /// Reads a vector of elements.
  template <class D>
  static HWY_INLINE hn::VFromD<D> read(D d, const std::byte* from) {
    return read_vector<T>(d, from);
  }
  /// Stores a vector of elements.
  template <class D>
  static HWY_INLINE void write(D d, hn::VFromD<D> value, std::byte* to) {
    write_vector<T>(d, value, to);
  }
  /// Stores a vector of elements past the caches.
  template <class D>
  static HWY_INLINE void stream(D d, hn::VFromD<D> value, std::byte* to) {
    stream_vector<T>(d, value, to);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#endif

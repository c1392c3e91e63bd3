// Buffers: the memory that a collective reads or writes, as a list of stretches that together make one whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace convoy::comm {

/// A stretch of memory of whole elements.
struct Extent {
  /// The first element.
  std::byte* data = nullptr;
  std::int64_t elements = 0;
};

/// Elements that lie in one or several stretches; a gradient bucket is one buffer, each large gradient where autograd
/// left it. Ranks may cut the same buffer differently.
/// Ownership:  borrows the memory until the work on it has been waited for
class Buffer {
 public:
  Buffer() = default;
  /// Makes a buffer of one stretch.
  template <typename T>
  explicit Buffer(std::span<T> values)
      : Buffer({Extent{reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(values.data())),
                       static_cast<std::int64_t>(values.size())}}) {}
  /// Makes a buffer of several stretches; empty ones are left out.
  explicit Buffer(std::vector<Extent> extents) {
    for (const Extent& extent : extents) {
      if (extent.elements == 0) continue;
      extents_.push_back(extent);
      elements_ += extent.elements;
    }
  }
  /// Returns the number of elements.
  std::int64_t elements() const { return elements_; }
  /// Returns the stretches.
  std::span<const Extent> extents() const { return extents_; }

 private:
  std::vector<Extent> extents_;
  std::int64_t elements_ = 0;
};

}  // namespace convoy::comm

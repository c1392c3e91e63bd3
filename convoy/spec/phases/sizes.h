// Sizes: the elements of consecutive positions of a team, for what costs are counted by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "convoy/spec/blocks.h"
#include "convoy/spec/schedule/builder.h"

namespace convoy::spec {

/// The elements of consecutive positions, and sums of ranges of them.
class Sizes {
 public:
  /// No positions.
  Sizes() = default;
  /// One position for each size.
  explicit Sizes(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {
    for (const std::int64_t size : sizes_) sums_.push_back(sums_.back() + size);
  }
  /// Returns parts that are as even as the elements divide.
  static Sizes even(std::int64_t elements, int parts) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < parts; ++i) sizes.push_back(shard_range(elements, parts, i, 1).size());
    return Sizes(std::move(sizes));
  }
  /// Returns the number of positions.
  int count() const { return static_cast<int>(sizes_.size()); }
  /// Returns all elements.
  std::int64_t all() const { return sums_.back(); }
  /// Returns a position's elements; positions go on round the end.
  std::int64_t operator[](int position) const { return sizes_[static_cast<std::size_t>(wrap(position, count()))]; }
  /// Returns the elements of positions [begin, end).
  std::int64_t sum(int begin, int end) const {
    return sums_[static_cast<std::size_t>(end)] - sums_[static_cast<std::size_t>(begin)];
  }
  /// Returns the elements of `positions` positions from `begin` on, round the end.
  std::int64_t run(int begin, int positions) const {
    const int end = begin + positions;
    return end <= count() ? sum(begin, end) : sum(begin, count()) + sum(0, end - count());
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> sums_ = {0};
};

}  // namespace convoy::spec

// Sets of time as unions of intervals: what overlaps counts once.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::observe {

/// The half-open stretch [begin, end).
struct Interval {
  std::int64_t begin = 0, end = 0;
  /// Returns its length.
  std::int64_t length() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A union of intervals.
/// Threads:    one writer
class Intervals {
 public:
  Intervals() = default;
  /// Makes the union; empty or reversed intervals add nothing.
  explicit Intervals(std::vector<Interval> intervals);
  /// Returns the parts: sorted, apart from each other, none empty.
  const std::vector<Interval>& parts() const { return parts_; }
  /// Returns the length of the union.
  std::int64_t length() const;
  /// Returns what lies in both.
  Intervals both(const Intervals& other) const;
  /// Returns what lies here and not in the other.
  Intervals without(const Intervals& other) const;
  /// Returns what lies in either.
  Intervals either(const Intervals& other) const;

 private:
  std::vector<Interval> parts_;
};

}  // namespace convoy::observe

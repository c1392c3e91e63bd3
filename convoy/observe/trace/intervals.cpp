#include "convoy/observe/trace/intervals.h"

#include <algorithm>

namespace convoy::observe {

Intervals::Intervals(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  for (const Interval& next : intervals) {
    if (next.end <= next.begin) continue;
    if (!parts_.empty() && next.begin <= parts_.back().end) {
      parts_.back().end = std::max(parts_.back().end, next.end);
    } else {
      parts_.push_back(next);
    }
  }
}

std::int64_t Intervals::length() const {
  std::int64_t sum = 0;
  for (const Interval& part : parts_) sum += part.length();
  return sum;
}

Intervals Intervals::both(const Intervals& other) const {
  std::vector<Interval> common;
  for (std::size_t i = 0, j = 0; i < parts_.size() && j < other.parts_.size();) {
    const Interval& mine = parts_[i];
    const Interval& theirs = other.parts_[j];
    common.push_back({std::max(mine.begin, theirs.begin), std::min(mine.end, theirs.end)});
    mine.end < theirs.end ? ++i : ++j;
  }
  return Intervals(std::move(common));
}

Intervals Intervals::without(const Intervals& other) const {
  std::vector<Interval> rest;
  std::size_t j = 0;
  for (const Interval& mine : parts_) {
    std::int64_t begin = mine.begin;
    while (j < other.parts_.size() && other.parts_[j].end <= begin) ++j;
    for (std::size_t k = j; k < other.parts_.size() && other.parts_[k].begin < mine.end; ++k) {
      rest.push_back({begin, other.parts_[k].begin});
      begin = std::max(begin, other.parts_[k].end);
    }
    rest.push_back({begin, mine.end});
  }
  return Intervals(std::move(rest));
}

Intervals Intervals::either(const Intervals& other) const {
  std::vector<Interval> all = parts_;
  all.insert(all.end(), other.parts_.begin(), other.parts_.end());
  return Intervals(std::move(all));
}

}  // namespace convoy::observe

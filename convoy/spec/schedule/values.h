// What buffers hold while a schedule is played with symbols in place of numbers; used by validate alone.
//
// Words: a *value* is a leaf (input k of rank r) or the sum of two values, and has a number. A *segment* is a range of
// a buffer that holds one value, element by element. A *content* is segments in order; gaps were never written.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace convoy::spec {

/// Elements [begin, end) of a buffer or chunk that hold one value.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// The value's number in Values.
  int value = 0;
  /// The element of the leaves' inputs that `begin` comes from; the next ones follow.
  std::int64_t element = 0;
  /// Whether nothing is left to be combined into it.
  bool final = false;
};

/// The segments of a buffer in order.
using Content = std::vector<Segment>;

/// Appends a segment, joining it to the last one when they hold one value; an empty one is left out.
inline void append(Content& content, const Segment& segment) {
  if (segment.begin == segment.end) return;
  if (!content.empty()) {
    Segment& last = content.back();
    if (last.end == segment.begin && last.value == segment.value && last.final == segment.final &&
        last.element + (last.end - last.begin) == segment.element) {
      last.end = segment.end;
      return;
    }
  }
  content.push_back(segment);
}

/// Returns the part of a segment inside [begin, end), which it overlaps.
inline Segment cut(const Segment& segment, std::int64_t begin, std::int64_t end) {
  Segment part = segment;
  part.begin = std::max(segment.begin, begin);
  part.end = std::min(segment.end, end);
  part.element += part.begin - segment.begin;
  return part;
}

/// Returns the first segment that ends after `element`.
inline Content::const_iterator first_ending_after(const Content& content, std::int64_t element) {
  return std::upper_bound(content.begin(), content.end(), element,
                          [](std::int64_t value, const Segment& segment) { return value < segment.end; });
}

/// Puts `inserted`, which lies inside [begin, end), in place of what the content has there.
inline void overwrite(Content& content, std::int64_t begin, std::int64_t end, const Content& inserted) {
  auto first = first_ending_after(content, begin);
  auto last = first;
  Content middle;
  // Neighbours that touch take part, so that what holds one value stays one segment.
  if (first != content.begin() && std::prev(first)->end == begin) --first;
  if (first != content.end() && first->begin < begin) {
    append(middle, cut(*first, first->begin, std::min(first->end, begin)));
  }
  for (const Segment& segment : inserted) append(middle, segment);
  for (; last != content.end() && last->begin <= end; ++last) {
    if (last->end > end) append(middle, cut(*last, std::max(last->begin, end), last->end));
  }
  const auto at = content.erase(first, last);
  content.insert(at, middle.begin(), middle.end());
}

/// All values met so far; equal sums have equal numbers.
class Values {
 public:
  /// Returns the number of input `input` of `rank`.
  int leaf(int rank, int input) { return number({rank, input, true}); }
  /// Returns the number of a sum.
  int sum(int left, int right) { return number({left, right, false}); }

  /// Returns a value as text, for example "((0.0 + 1.0) + 2.0)".
  std::string text(int value) const {
    const Node& node = nodes_[static_cast<std::size_t>(value)];
    if (node.leaf) return fmt::format("{}.{}", node.first, node.second);
    return fmt::format("({} + {})", text(node.first), text(node.second));
  }

  /// Appends the (rank, input) of every leaf of a value, from left to right.
  void collect_leaves(int value, std::vector<std::pair<int, int>>& leaves) const {
    const Node& node = nodes_[static_cast<std::size_t>(value)];
    if (node.leaf) {
      leaves.emplace_back(node.first, node.second);
    } else {
      collect_leaves(node.first, leaves);
      collect_leaves(node.second, leaves);
    }
  }

 private:
  struct Node {
    int first = 0;
    int second = 0;
    bool leaf = false;
    friend auto operator<=>(const Node&, const Node&) = default;
  };

  int number(const Node& node) {
    const auto entry = numbers_.try_emplace(node, static_cast<int>(nodes_.size()));
    if (entry.second) nodes_.push_back(node);
    return entry.first->second;
  }

  std::vector<Node> nodes_;
  std::map<Node, int> numbers_;
};

}  // namespace convoy::spec

// The trace recorder: keeps the spans of one rank in memory that is set aside before they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "convoy/observe/trace/trace.h"

namespace convoy::observe {

/// Keeps spans up to a bound, and counts those beyond it.
/// Threads:    one
/// Cost:       a copy of 88 bytes a span, into memory that was touched before
class TraceRecorder {
 public:
  /// Makes room for this many spans.
  explicit TraceRecorder(std::size_t capacity) : room_(capacity) {}

  /// Keeps a span, or counts it as dropped when there is no room.
  void record(const Span& span) {
    if (used_ < room_.size()) {
      room_[used_++] = span;
    } else {
      ++dropped_;
    }
  }
  /// Returns the spans in the order of their recording.
  std::span<const Span> spans() const { return {room_.data(), used_}; }
  /// Returns how many spans found no room.
  std::int64_t dropped() const { return dropped_; }

 private:
  std::vector<Span> room_;
  std::size_t used_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace convoy::observe

// The OutputWindow of ranks that map each other's arenas.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "convoy/comm/output_window.h"
#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/comm/shared_memory/shared_segment.h"

namespace convoy::comm {

/// A rank's window, and its view of all others'.
/// Threads:    one caller at a time
class SharedWindow final : public OutputWindow {
 public:
  /// Borrows everything. `arenas` are the ranks' arenas as this process maps them; this rank's own may be empty.
  SharedWindow(const SegmentView& view, int rank, SharedArena& arena, std::span<const FileMapping> arenas)
      : view_(view), rank_(rank), arena_(arena), arenas_(arenas) {}

  void open(std::uint64_t sequence, std::span<const Extent> output, std::size_t element_bytes) override;
  void close() override { view_.window(rank_).sequence.store(0); }
  std::vector<WindowPart> parts(int peer, std::uint64_t sequence, std::size_t element_bytes) override;
  bool begin_store(int peer, std::uint64_t sequence) override;
  void end_store(int peer) override { view_.ends(rank_, peer).storing.store(0, std::memory_order_release); }
  SharedArena& arena() override { return arena_; }

  /// Closes the window although stores may be under way: waits for them, and takes the pages out of the reach of those
  /// who are still not done at the limit. `ended` says of a peer that its process has ended.
  /// Blocking:   for at most the limit
  void take_back(Duration limit, const std::function<bool(int)>& ended);

 private:
  bool is_written(const std::function<bool(int)>& ended) const;

  const SegmentView& view_;
  const int rank_;
  SharedArena& arena_;
  const std::span<const FileMapping> arenas_;
};

}  // namespace convoy::comm

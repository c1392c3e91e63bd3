// MirroredBoard: each rank's copy of the board where ranks share no memory; what its own rank posts goes to the others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/gloo/wire.h"
#include "convoy/observe/progress_board.h"

namespace convoy::comm {

/// A board in this process; what its own rank posts is handed on.
/// Threads:    as ProgressBoard; the functions are called by whoever posts
class MirroredBoard final : public observe::ProgressBoard {
 public:
  /// Calls `entered` for each operation that rank `own` enters, and `changed` when its line has changed.
  MirroredBoard(int ranks, int own, std::function<void(const observe::BoardOperation&)> entered,
                std::function<void()> changed)
      : memory_(observe::SharedBoard::bytes(ranks) + 64),
        board_(aligned(ranks), ranks),
        own_(own),
        entered_(std::move(entered)),
        changed_(std::move(changed)) {}

  int ranks() const override { return board_.ranks(); }
  void enter(int rank, const observe::BoardOperation& operation) override {
    board_.enter(rank, operation);
    if (rank == own_) entered_(operation);
  }
  void update(int rank, observe::BoardPhase phase, std::uint64_t chunk, int waits_for) override {
    board_.update(rank, phase, chunk, waits_for);
    if (rank == own_) changed_();
  }
  void beat(int rank, std::int64_t now_ns, std::int64_t pid) override {
    board_.beat(rank, now_ns, pid);
    if (rank == own_) changed_();
  }
  /// Returns what this rank tells its peers of its line.
  Control describe() const {
    Control control;
    control.line = board_.line(own_);
    if (control.line.heartbeat_ns != 0) {
      control.beat_age_ns = std::max<std::int64_t>(0, now_ns() - control.line.heartbeat_ns);
    }
    return control;
  }
  /// Shows what a peer has told of its line and of what it entered.
  void hear(int peer, const Control& control) {
    for (const observe::BoardOperation& operation : control.entered) board_.enter(peer, operation);
    // A line that runs ahead of the operations comes again with them.
    if (control.line.sequence == board_.line(peer).sequence) {
      const bool known = control.line.waits_for < ranks();
      board_.update(peer, control.line.phase, control.line.chunk, known ? control.line.waits_for : -1);
    }
    if (control.beat_age_ns >= 0) board_.beat(peer, now_ns() - control.beat_age_ns, control.line.pid);
  }
  observe::BoardLine line(int rank) const override { return board_.line(rank); }
  std::optional<observe::BoardOperation> operation(int rank, std::uint64_t sequence) const override {
    return board_.operation(rank, sequence);
  }

 private:
  static std::int64_t now_ns() {
    return std::chrono::duration_cast<Duration>(system_clock().now().time_since_epoch()).count();
  }
  void* aligned(int ranks) {
    void* memory = memory_.data();
    std::size_t space = memory_.size();
    return std::align(64, observe::SharedBoard::bytes(ranks), memory, space);
  }

  std::vector<std::byte> memory_;
  observe::SharedBoard board_;
  const int own_;
  const std::function<void(const observe::BoardOperation&)> entered_;
  const std::function<void()> changed_;
};

}  // namespace convoy::comm

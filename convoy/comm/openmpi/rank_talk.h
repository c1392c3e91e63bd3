// RankTalk: what ranks tell each other beside data: the board, the abort notice, arrival and farewell.
//
// MPI moves a message only while both ends call it, so whoever waits *polls*: MPI moves what it can, what has come is
// taken, what is due is sent. A rank that is in no operation polls whenever its group's thread gives a sign of life.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/mutex.h"
#include "convoy/comm/gloo/mirrored_board.h"
#include "convoy/comm/gloo/wire.h"
#include "convoy/comm/openmpi/mpi_link.h"
#include "convoy/comm/shared_memory/peer_process.h"
#include "convoy/comm/transport.h"

namespace convoy::comm {

/// This rank's side of the talk, over the link's control lane.
/// Threads:    any, apart from say_bye
class RankTalk {
 public:
  /// Borrows the link. `watches` see the end of each peer's process; those that watch nothing never do.
  RankTalk(MpiLink& link, int rank, std::vector<ProcessWatch> watches);
  RankTalk(const RankTalk&) = delete;
  RankTalk& operator=(const RankTalk&) = delete;

  /// Returns the board; what this rank posts there goes to all peers.
  MirroredBoard& board() { return board_; }
  /// Returns a number that changes whenever anything may have changed for this rank.
  std::uint32_t signal() const { return signal_.load(); }
  /// Changes this rank's signal.
  void wake() { signal_.fetch_add(1); }
  /// Lets MPI move, takes what has come and sends what is due; returns whether anything came, went or ended.
  /// Errors:     what MPI fails with, now or on a thread that could not throw it
  bool poll();
  /// Leaves the notice for all ranks.
  void raise_abort(const AbortNotice& notice);
  /// Returns the first notice.
  std::optional<AbortNotice> abort_notice() const;
  /// Returns whether everything was told that must be told at once, to all who live.
  bool all_told();

  /// Tells all peers that this rank's keys are gone from the store.
  void say_ready();
  /// Returns whether a peer has told that.
  bool ready(int peer) const;
  /// Returns whether a peer has left the group in order.
  bool left(int peer) const;
  /// Returns why a peer will never send again.
  std::optional<std::string> lost(int peer);
  /// Remembers that a peer does not keep to the protocol.
  void distrust(int peer);

  /// Tells who is still there that this rank leaves; to be called again after a poll until it returns true: all peers
  /// have answered, or are gone.
  bool say_bye();
  /// Returns whether all peers have parted in order, so that nobody sends anything any more.
  bool parted() const;

 private:
  struct Peer {
    ProcessWatch watch;
    std::vector<observe::BoardOperation> entered;
    bool notice_due = false;
    bool line_due = false;
    TimePoint line_told;
    bool ready = false;
    bool bye_said = false;
    bool bye_came = false;
    bool bye_seen = false;
    bool distrusted = false;
  };

  int size() const { return board_.ranks(); }
  Peer& peer(int rank) CONVOY_REQUIRES(mutex_) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const CONVOY_REQUIRES(mutex_) { return peers_[static_cast<std::size_t>(rank)]; }
  void tell_enter(const observe::BoardOperation& operation);
  void tell_line();
  void attempt(const std::function<void()>& call);
  void throw_if_failed() CONVOY_REQUIRES(mutex_);
  bool move() CONVOY_REQUIRES(mutex_);
  void handle(int from, const MpiBlock& block) CONVOY_REQUIRES(mutex_);
  void flush(int to) CONVOY_REQUIRES(mutex_);
  void flush_all() CONVOY_REQUIRES(mutex_);
  void say(int to, WireKind kind, std::string_view body = "") CONVOY_REQUIRES(mutex_);
  void hand_on_notice() CONVOY_REQUIRES(mutex_);

  // Constant.
  MpiLink& link_;
  const int rank_;
  // Self-synchronised.
  MirroredBoard board_;
  std::atomic<std::uint32_t> signal_{0};

  mutable Mutex mutex_;
  std::vector<Peer> peers_ CONVOY_GUARDED_BY(mutex_);
  TimePoint polled_ CONVOY_GUARDED_BY(mutex_);
  std::optional<AbortNotice> notice_ CONVOY_GUARDED_BY(mutex_);
  std::optional<AbortNotice> own_notice_ CONVOY_GUARDED_BY(mutex_);
  std::optional<Error> failure_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::comm

// A channel: everything between this rank and one peer over sockets. It cuts nothing and waits for nobody: it keeps
// messages in order over one or several connections, and never has more on its way than the peer has buffers for.
//
// Words: a *lane* is one connection (one for each network interface). A lane has `chunks` *credits*: data messages that
// the peer has not taken out and given back. Control messages have a window of their own; they always find a free
// buffer at the peer, because its receiving thread takes them out at once. So news of the board, credits and the abort
// notice come through even while data are stuck. A control message is acknowledged by a later head or control message
// in the other direction; where none is due by itself, one is sent for every kWindow / 2 that came. Such an answer may
// exceed the window by kReserve, so that two full windows cannot wait for each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "convoy/base/mutex.h"
#include "convoy/comm/gloo/link.h"
#include "convoy/comm/gloo/wire.h"

namespace convoy::comm {

/// What a channel needs of the transport that it belongs to.
/// Threads:    any; called with the channel's lock held, so it must not call channels
class ChannelHost {
 public:
  virtual ~ChannelHost() = default;
  /// Something may have changed for this rank.
  virtual void changed() = 0;
  /// Returns this rank's line, the age of its heartbeat and its own abort notice.
  virtual Control describe() = 0;
  /// A peer has said something about itself.
  virtual void told(int peer, const Control& control) = 0;
};

/// How a channel works; the same on both ends.
struct ChannelShape {
  /// Data messages on their way in one lane.
  std::size_t chunks = 4;
  /// The largest payload.
  std::size_t chunk_bytes = std::size_t{1} << 18;
};

/// The traffic with one peer.
/// Threads:    any; one receiving thread for each lane
class Channel {
 public:
  /// Borrows the links, which are connected to the peer. The peer shows `expected` in its first message of each lane,
  /// and wants to see `shown`.
  Channel(ChannelHost& host, const std::vector<std::unique_ptr<Link>>& links, int peer, const ChannelShape& shape,
          std::string shown, std::string expected);
  /// Ends the receiving threads; what is not sent may be lost, see say_bye.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Returns whether the peer has shown on each lane who it is.
  bool greeted();
  /// Tells the peer that this rank's part in the store is gone.
  void say_ready();
  /// Returns whether the peer has said so.
  bool ready();
  /// Offers a message; false when there is no credit, or the peer is gone.
  bool try_send(const MessageHeader& header, const std::byte* data);
  /// Takes the next message if it has arrived. Its ticket is for release.
  bool try_receive(Message& message);
  /// Gives a message's buffer back to the peer.
  void release(std::uint64_t ticket);
  /// Tells the peer what this rank enters.
  void post_enter(const observe::BoardOperation& operation);
  /// Tells the peer of this rank's abort notice.
  void post_notice();
  /// Tells the peer what is due. This rank's line is due at most once in a while.
  void post_line();
  /// Returns why the peer will never send again.
  std::optional<std::string> lost();
  /// Returns the payload bytes sent so far.
  std::uint64_t sent_bytes();
  /// Says that this rank leaves, once everything before has gone out. Returns whether the peer has seen it or is gone;
  /// to be called again when something has changed until it does.
  bool say_bye();

 private:
  static constexpr std::size_t kWindow = 8;
  static constexpr std::size_t kReserve = 4;
  static constexpr std::size_t kOnce = 4;  // hello, ready, bye and its answer

  struct Slot {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<LinkBuffer> buffer;
    bool in_use = false;
  };
  struct Lane {
    std::vector<Slot> staging;
    std::array<Slot, kOnce> once;
    std::uint64_t sent = 0;
    std::uint64_t given_back = 0;  // of those, by the peer
    std::vector<Slot> inbox;
    std::deque<std::size_t> posted;
    std::deque<std::size_t> arrived;
    std::uint64_t taken = 0;
    std::uint64_t returned = 0;  // of those that came, by this rank
    std::uint64_t reported = 0;
    bool greeted = false;
    bool bye_came = false;
    bool bye_seen = false;
    std::jthread thread;
  };

  Slot make_slot(Link& link, std::size_t bytes) const;
  void run(std::size_t lane);
  bool handle(std::size_t lane, std::size_t at) CONVOY_REQUIRES(mutex_);
  bool handle_control(std::string_view body) CONVOY_REQUIRES(mutex_);
  bool note_counts(std::size_t lane, const WireHead& head) CONVOY_REQUIRES(mutex_);
  void post(Lane& lane, std::size_t at) CONVOY_REQUIRES(mutex_);
  void send(Lane& lane, Slot& slot, WireKind kind, std::string_view body) CONVOY_REQUIRES(mutex_);
  void transmit(Lane& lane, Slot& slot, WireHead head, const void* body) CONVOY_REQUIRES(mutex_);
  std::size_t emptiest_lane() const CONVOY_REQUIRES(mutex_);
  void flush() CONVOY_REQUIRES(mutex_);
  bool flush_due() const CONVOY_REQUIRES(mutex_);
  bool answer_due() const CONVOY_REQUIRES(mutex_) { return controls_came_ - controls_reported_ >= kWindow / 2; }
  void lose(const std::string& why) CONVOY_REQUIRES(mutex_);
  bool left() const CONVOY_REQUIRES(mutex_);
  bool gone() const CONVOY_REQUIRES(mutex_) { return lost_.has_value() || left(); }

  // Constant.
  ChannelHost& host_;
  const int peer_;
  const ChannelShape shape_;
  const std::size_t slot_bytes_;
  const std::string shown_;
  const std::string expected_;

  mutable Mutex mutex_;
  std::deque<Lane> lanes_;  // each lane is guarded by the lock, its buffers are self-synchronised
  std::vector<Slot> controls_ CONVOY_GUARDED_BY(mutex_);
  std::uint64_t controls_sent_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::uint64_t controls_seen_ CONVOY_GUARDED_BY(mutex_) = 0;      // of those, by the peer
  std::uint64_t controls_came_ CONVOY_GUARDED_BY(mutex_) = 0;      // from the peer
  std::uint64_t controls_reported_ CONVOY_GUARDED_BY(mutex_) = 0;  // of those, told to the peer
  std::uint64_t next_order_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_taken_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::vector<observe::BoardOperation> entered_ CONVOY_GUARDED_BY(mutex_);
  bool notice_due_ CONVOY_GUARDED_BY(mutex_) = false;
  bool line_due_ CONVOY_GUARDED_BY(mutex_) = false;
  bool credits_due_ CONVOY_GUARDED_BY(mutex_) = false;
  TimePoint line_told_ CONVOY_GUARDED_BY(mutex_);
  bool ready_ CONVOY_GUARDED_BY(mutex_) = false;
  bool bye_said_ CONVOY_GUARDED_BY(mutex_) = false;
  bool stopping_ CONVOY_GUARDED_BY(mutex_) = false;
  std::optional<std::string> lost_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::comm

// The Transport seam: moves messages between the ranks of one group, in order for each pair, and carries the group's
// board and abort notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/comm/native_collectives.h"
#include "convoy/comm/output_window.h"
#include "convoy/observe/progress_board.h"

namespace convoy::comm {

/// What a message says about itself; checked by the receiver.
struct MessageHeader {
  /// The group's generation; a message of another generation is dropped.
  std::uint64_t generation = 0;
  /// The operation's number in its group.
  std::uint64_t sequence = 0;
  /// The number of this message among those of its operation from this sender to this receiver, counted from 0.
  std::uint64_t index = 0;
  /// The length of the payload.
  std::uint64_t bytes = 0;
};

/// A message that has arrived.
/// Ownership:  data may be read until Transport::release
struct Message {
  /// What the message says about itself.
  MessageHeader header;
  const std::byte* data = nullptr;
  /// Whether data may be kept for as long as the receiver likes: it lies where the sender has it. Otherwise it lies in
  /// a buffer of the transport, must be copied out and released before anything else is waited for.
  bool lent = false;
  /// Whether data is an address in the sender's own memory, which only Transport::fetch reads.
  bool remote = false;
  /// Whether the payload lies in this rank's output already (OutputWindow), and data is null.
  bool stored = false;
  /// The sender, and the transport's own number of the message.
  int peer = -1;
  /// The transport's own number of the message.
  std::uint64_t ticket = 0;
};

/// The first failure of a group, as every rank of it learns it.
struct AbortNotice {
  int rank = -1;
  /// Who has to act on it.
  ErrorCode code = ErrorCode::kAborted;
  /// What failed there.
  std::string message;
};

/// A small payload that one rank shows to all others at once.
struct Published {
  /// The operation's number; a rank shows at most one payload for each.
  std::uint64_t sequence = 0;
  /// What the ranks must agree on, hashed.
  std::uint64_t fingerprint = 0;
  /// The payload.
  const std::byte* data = nullptr;
  /// Its length.
  std::size_t bytes = 0;
};

/// Moves messages between the ranks of one group.
/// Threads:    one caller at a time, apart from raise_abort, abort_notice, wake_all and board, which any thread may
///             call
/// Blocking:   only wait blocks
/// Errors:     kPeerLost when the transport itself knows that a peer is gone (names it)
class Transport {
 public:
  virtual ~Transport() = default;
  /// Returns this rank's number in the group.
  virtual int rank() const = 0;
  /// Returns the number of ranks.
  virtual int size() const = 0;
  /// Returns the transport's name: "in_process", "shared_memory".
  virtual std::string name() const = 0;
  /// Returns the largest payload of one message for this memory (a lent one may be as large as it likes).
  virtual std::size_t largest_message(const std::byte* data) const = 0;
  /// Offers a message; returns its ticket, or nothing when there is no room now. Data that are null lie in the peer's
  /// output already, as its window allowed.
  /// Ownership:  borrows the payload until sent() says that it is free again
  virtual std::optional<std::uint64_t> try_send(int peer, const MessageHeader& header, const std::byte* data) = 0;
  /// Returns whether the payload of that message may be written again: the receiver released it, or it was copied.
  virtual bool sent(int peer, std::uint64_t ticket) = 0;
  /// Takes the next message of a peer if one has arrived.
  virtual bool try_receive(int peer, Message& message) = 0;
  /// Copies bytes [offset, offset + bytes) of a remote message's payload.
  virtual void fetch(const Message& /*message*/, std::size_t /*offset*/, std::byte* /*to*/, std::size_t /*bytes*/) {}
  /// Gives a message's memory back to its sender. Messages of one peer may be released in any order.
  virtual void release(const Message& message) = 0;
  /// Returns a number that changes whenever anything may have changed for this rank: read it, look, then wait on it.
  virtual std::uint32_t signal() const = 0;
  /// Blocks until signal() differs from `seen` or the limit is over; spins first when cores are enough.
  virtual void wait(std::uint32_t seen, Duration limit) = 0;
  /// Changes every rank's signal: something on the board or the abort notice is new.
  virtual void wake_all() = 0;
  /// Returns the group's board.
  virtual observe::ProgressBoard& board() = 0;
  /// Leaves the notice for all ranks and wakes them. The first notice of a group stays.
  virtual void raise_abort(const AbortNotice& notice) = 0;
  /// Returns the notice, if any.
  virtual std::optional<AbortNotice> abort_notice() const = 0;
  /// Returns why a peer will never send again ("its process has ended", "it has left the group"); nothing while it may.
  /// What it sent before may still be there to be taken.
  virtual std::optional<std::string> lost(int peer) = 0;
  /// Takes back what was lent and shown, after a failure: when it returns, no peer reads this rank's payloads any more,
  /// or it throws away what it reads because of the abort notice; and no peer writes its output.
  /// Blocking:   for at most the limit
  virtual void withdraw(Duration limit) = 0;
  /// Returns how many payload bytes this rank has sent to a peer so far, whichever way they went.
  virtual std::uint64_t sent_bytes(int peer) const = 0;

  /// Returns the largest payload that publish() takes; 0 where ranks have no memory that all of them read.
  virtual std::size_t publish_capacity() const { return 0; }
  /// Shows a payload to all ranks. It stays readable until this rank has shown another one and every rank has shown one
  /// after it, or has entered a later operation: who waits for all in every operation may read in peace.
  /// Ownership:  copies the payload
  virtual void publish(const Published& /*payload*/) {}
  /// Returns what a rank shows under an operation's number, if it is there yet. Reading it needs no release.
  virtual std::optional<Published> published(int /*rank*/, std::uint64_t /*sequence*/) { return std::nullopt; }
  /// Returns what ranks show each other of their outputs; null where they cannot write each other's memory.
  virtual OutputWindow* window() { return nullptr; }
  /// Returns the collectives that the transport's library does itself (algorithm "native"); null where it has none.
  virtual NativeCollectives* native() { return nullptr; }
  /// Says that this rank waits for payloads, so that publish() changes its signal; undone with false.
  virtual void watch_published(bool /*on*/) {}
};

}  // namespace convoy::comm

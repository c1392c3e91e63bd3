// The control segment of a group over shared memory: its layout, and mappings of anonymous files between processes.
//
// Words: a *lane* leads from one rank to another; it is a ring of *slots*, each holding one message's header and the
// place of its payload: in the sender's arena, or in one of the lane's *staging* chunks. A slot is free again once the
// receiver has taken the message out. The payload is free again once the receiver has released it, which may be much
// later and in any order: so it hangs on a *loan*, a counter that the sender picks among those that are free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "convoy/comm/transport.h"

namespace convoy::comm {

/// An anonymous file mapped into this process.
/// Threads:    one caller at a time
class FileMapping {
 public:
  FileMapping() = default;
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  /// Makes a file of this size, all zero, and maps it.
  /// Errors:     kIo when the kernel refuses
  static FileMapping create(const char* name, std::size_t bytes);
  /// Maps descriptor `descriptor` of process `pid`, and keeps no descriptor.
  /// Errors:     kPeerLost when that process is gone or its file has another size
  static FileMapping open(std::int64_t pid, int descriptor, std::size_t bytes, bool writable);

  /// Returns the memory, its size, and the descriptor that peers open (-1 when closed).
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  int descriptor() const { return descriptor_; }
  /// Closes the descriptor and keeps the memory.
  void close_descriptor();

 private:
  void drop() noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
};

/// Where a payload lies; kStored: in the receiver's output.
enum class PayloadPlace : std::uint32_t { kNone = 0, kArena = 1, kStaging = 2, kRemote = 3, kStored = 4 };

/// One message in a lane.
struct alignas(64) LaneSlot {
  /// What the message says about itself.
  MessageHeader header;
  /// An offset into the sender's arena, the number of a staging chunk, or an address in the sender's memory.
  std::uint64_t offset = 0;
  /// The loan on which the payload hangs, and how often that loan has been given.
  std::uint32_t loan = 0;
  /// Where the payload lies.
  PayloadPlace place = PayloadPlace::kNone;
  /// How often the loan has been given, this time included.
  std::uint64_t use = 0;
};

/// The two ends of a lane, apart in the cache: how many messages went in, and how many were taken out.
struct LaneEnds {
  /// Messages that went in.
  alignas(64) std::atomic<std::uint64_t> head;
  /// Messages that were taken out.
  alignas(64) std::atomic<std::uint64_t> tail;
  /// Whether the receiver can read the sender's memory through the kernel.
  std::atomic<std::uint32_t> reads_memory;
  /// Whether the sender may be storing into the receiver's window.
  alignas(64) std::atomic<std::uint32_t> storing;
};

/// A stretch of a rank's arena that holds a part of its output.
struct WindowStretch {
  /// The first byte of the output, the first byte of the arena, and how many.
  std::uint64_t output = 0;
  std::uint64_t arena = 0;
  std::uint64_t bytes = 0;
};

/// What a rank shows of its output.
struct alignas(64) WindowCell {
  /// The most stretches; what lies in more is not shown.
  static constexpr std::size_t kMost = 125;
  /// The operation for which it is open; 0 when it is closed.
  std::atomic<std::uint64_t> sequence;
  /// How many stretches there are.
  std::uint64_t count;
  WindowStretch stretches[kMost];
};

/// A loan: the newest use of it that the receiver has given back.
using LaneLoan = std::atomic<std::uint64_t>;

/// How far a rank is in joining and leaving.
enum class Presence : std::uint32_t { kAway = 0, kMapped = 1, kReady = 2, kLeft = 3 };

/// A rank's word to sleep on.
struct alignas(64) RankCell {
  /// Changes whenever anything may have changed for the rank.
  std::atomic<std::uint32_t> signal;
  /// Threads that sleep on the signal.
  std::atomic<std::uint32_t> sleepers;
  /// How far the rank is.
  std::atomic<Presence> presence;
  /// Whether the rank wants its signal changed when another one publishes.
  std::atomic<std::uint32_t> watches;
  /// Where in the rank's own memory a number lies by which peers try whether the kernel lets them read it.
  std::atomic<std::uint64_t> probe_address;
  /// That number.
  std::atomic<std::uint64_t> probe_value;
};

/// What a rank publishes: a small payload lies in the same cache line as its number, so that one line crosses over.
struct alignas(64) PublishCell {
  /// The payload that fits in the line.
  static constexpr std::size_t kInlineBytes = 40;
  /// The operation's number.
  std::atomic<std::uint64_t> sequence;
  /// What the ranks must agree on, hashed.
  std::uint64_t fingerprint;
  /// The length of the payload; a longer one than kInlineBytes lies behind the cell.
  std::uint64_t bytes;
  /// A short payload.
  std::byte inline_data[kInlineBytes];
};

/// The abort notice: `state` goes from 0 over 1 (being written) to 2 (readable).
struct alignas(64) AbortCell {
  /// The longest message that is kept.
  static constexpr std::size_t kTextBytes = 1000;
  std::atomic<std::uint32_t> state;
  /// The rank that raised it.
  std::int32_t rank;
  /// The number of its ErrorCode.
  std::int32_t code;
  /// The length of the message.
  std::uint32_t length;
  /// The message.
  char text[kTextBytes];
};

/// The sizes that decide a segment's layout.
struct SegmentShape {
  /// Ranks of the group.
  int ranks = 1;
  /// Messages on their way in one lane.
  std::size_t slots = 256;
  /// Chunks in one lane for payloads that do not lie in the arena.
  std::size_t staging_chunks = 4;
  /// The size of such a chunk.
  std::size_t chunk_bytes = std::size_t{1} << 18;
  /// The largest payload that is published.
  std::size_t publish_bytes = std::size_t{1} << 14;

  /// Returns how many loans a lane has: the last ones belong to the staging chunks.
  std::size_t loans() const { return slots + staging_chunks; }
  /// Returns the bytes of the whole segment.
  std::size_t bytes() const;
};

/// Finds the parts of a segment in its memory.
/// Ownership:  borrows the memory
class SegmentView {
 public:
  SegmentView() = default;
  /// Lays the shape over memory that is aligned to a page; all zero is an empty segment.
  SegmentView(std::byte* memory, const SegmentShape& shape) : memory_(memory), shape_(shape) {}

  /// Returns the shape.
  const SegmentShape& shape() const { return shape_; }
  /// Returns the number that tells this segment from all others; set by its maker.
  std::uint64_t& nonce() const;
  /// Returns the abort notice.
  AbortCell& abort() const;
  /// Returns the memory of the board.
  std::byte* board() const;
  /// Returns a rank's cell.
  RankCell& rank(int rank) const;
  /// Returns where a rank publishes operation number `sequence`: two places take turns.
  PublishCell& publication(int rank, std::uint64_t sequence) const;
  /// Returns a rank's window.
  WindowCell& window(int rank) const;
  /// Returns the ends of a lane.
  LaneEnds& ends(int from, int to) const;
  /// Returns the slot of a lane that holds its message number `number`.
  LaneSlot& slot(int from, int to, std::uint64_t number) const;
  /// Returns one of a lane's loans.
  LaneLoan& loan(int from, int to, std::size_t number) const;
  /// Returns the memory of one of a lane's staging chunks.
  std::byte* staging(int from, int to, std::size_t chunk) const;

 private:
  std::byte* lane(int from, int to) const;

  std::byte* memory_ = nullptr;
  SegmentShape shape_;
};

}  // namespace convoy::comm

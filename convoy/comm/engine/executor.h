// Executes one collective operation on this rank: runs its rounds of the schedule over a transport.
//
// Words: a *piece* is a stretch of memory of whole elements. A send of a chunk becomes one message per piece, cut to
// what the transport takes; the receiver accepts any cutting. A message is *lent* when it lies in the sender's memory:
// it is read there by the reduction and released afterwards, others are copied out. A lent send is *outstanding* until
// the receiver has released it; no memory of an outstanding send is written (the write-after-read rule). Where peers
// show their outputs (OutputWindow), a reduction *stores* its result there at once, and the send says no more than that.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/comm/engine/executor_task.h"
#include "convoy/comm/engine/small_reduce.h"

namespace convoy::comm {

class PieceCursor;

/// Executes one operation.
/// Threads:    one caller at a time; lives for one operation
/// Blocking:   until the operation is complete on this rank, at most the timeout
class Executor {
 public:
  /// Borrows everything for the operation's duration; counts payload bytes in `sent_bytes`.
  Executor(Transport& transport, const ExecutorOptions& options, ExecutorPools& pools, const ExecutorTask& task,
           std::atomic<std::uint64_t>& sent_bytes);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Enters, agrees with all ranks that they mean the same operation, and runs it.
  /// Errors:     kDesync, kTimeout, kPeerLost, kAborted, as Group says
  void run();
  /// Runs a small all-reduce by publication; `shown` says that this rank's input is published already.
  /// Errors:     as run()
  void run_small(SmallReducer& reducer, bool shown);

 private:
  // A lent send that the receiver has not released.
  struct Outstanding {
    int peer = -1;
    std::uint64_t ticket = 0;
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::size_t round = 0;
    // The copy that was sent in place of private memory.
    std::shared_ptr<std::byte> copy;
  };
  // A piece that is to be offered to a peer; one without elements is an empty message.
  struct Parcel {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    // Whether the peer has it already.
    bool stored = false;
    // Holds the data when they are a copy.
    std::shared_ptr<std::byte> copy;
  };
  // Elements of a send that are in the peer's output already.
  struct StoredRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  // A second place for a reduction's result: a peer's output, or a copy for peers that cannot read it where it lies.
  struct StoreTarget {
    const spec::DirectStore* store = nullptr;
    std::shared_ptr<std::byte> copy;
    // The first element in that output, whose memory the parts are.
    std::int64_t offset = 0;
    std::vector<WindowPart> parts;
    // Whether a store is announced, and what has been stored.
    bool announced = false;
    std::vector<StoredRange> stored;
  };
  // Elements from `done` on, at most `most`.
  struct Range {
    std::int64_t done = 0;
    std::int64_t most = 0;
  };
  struct Sources;
  // What a scratch buffer holds: pieces of lent messages, or of memory of its own.
  struct Scratch {
    std::vector<Extent> pieces;
    std::vector<Message> lent;
    // Messages that lie in the sender's own memory, in order; then there is nothing else, and pieces is empty.
    std::vector<Message> remote;
    std::vector<ScratchPool::Block> owned;
  };
  // A receive that is not complete; messages from one peer fill its receives in order.
  struct Receive {
    const spec::Chunk* target = nullptr;
    std::int64_t received = 0;
    // In a wire format: what has come so far.
    ScratchPool::Block encoded;
    std::size_t taken_bytes = 0;
  };
  // A part of a receive that has arrived and may not be written to its target yet.
  struct Deferred {
    spec::Chunk target;
    Scratch source;
  };
  // The traffic with one peer.
  struct Peer {
    std::deque<Parcel> sends;
    std::deque<Receive> receives;
    std::uint64_t sent_messages = 0;
    std::uint64_t taken_messages = 0;
    bool seen_lost = false;
  };

  SmallReduce small_operation() const;
  void agree();
  std::vector<int> not_entered();
  void check_agreement();
  void run_native();
  void run_round(const spec::Round& round);
  const spec::RankRounds& rounds() const { return collective_.schedule->ranks[static_cast<std::size_t>(rank_)]; }
  void queue_messages(const spec::Round& round);
  void queue_send(const spec::Operation& operation, std::size_t index);
  void queue_pieces(int to, const spec::Chunk& chunk);
  void exchange();
  bool offer_sends();
  bool offer_next(int peer, Peer& traffic);
  bool take_receives();
  bool take_next(int peer, Peer& traffic);
  void check_message(const Message& message, const Peer& traffic, std::int64_t room) const;
  [[noreturn]] void refuse_message(const Message& message, const Peer& traffic, const std::string& expected) const;
  bool compresses() const;
  void copy_inputs();
  void queue_encoded(const spec::Operation& operation);
  void go_on_with(const spec::Chunk& chunk, std::span<const float> exact, std::span<const std::byte> encoded);
  void round_result(const spec::Chunk& chunk);
  void keep_error(const spec::Chunk& chunk, std::span<const float> exact, std::span<const float> rounded);
  void take_encoded(const Message& message, Peer& traffic);
  void put_decoded(const spec::Chunk& target, Scratch decoded);
  void place(const Message& message, const spec::Chunk& part);
  void fetch(const Message& message, const std::vector<Extent>& targets);
  void hold(Scratch& scratch, const Message& message, bool keep_lent);
  void write_deferred();
  void take_stored(const Message& message, const spec::Chunk& part);
  void combine_chunks(const spec::Operation& operation, std::size_t index);
  std::int64_t combine_some(const spec::Operation& operation, Sources& sources, const PieceCursor& target,
                            std::vector<StoreTarget>& stores, Range range);
  Sources open_sources(const spec::Operation& operation, std::int64_t most);
  void close_sources(const spec::Operation& operation, Sources& sources);
  void open_window();
  bool may_show_output() const;
  std::vector<StoreTarget> store_targets(const spec::Operation& operation, std::size_t index);
  void begin_stores(std::vector<StoreTarget>& targets);
  std::byte* store_place(const StoreTarget& target, std::int64_t done, std::int64_t& count) const;
  void end_stores(std::vector<StoreTarget>& targets, const std::byte* result, std::int64_t done, std::int64_t count);
  void remember_stored(const spec::Operation& operation, std::vector<StoreTarget> targets);
  bool in_arena(const std::vector<Extent>& pieces) const;
  void own_everything_held();
  void own(Scratch& scratch);
  const Scratch* remote_scratch(const spec::Chunk& chunk) const;
  void own_remote(Scratch& scratch);
  void read_remote(const Scratch& scratch, std::size_t offset, std::byte* to, std::size_t bytes);
  void let_go(Scratch& scratch);
  void forget_sent();
  bool conflicts(const std::byte* data, std::size_t bytes, bool this_round_only) const;
  bool conflicts(const std::vector<Extent>& pieces, bool this_round_only) const;
  void wait_until_writable(const std::vector<Extent>& pieces);
  void wait_until_all_sent();
  void wait_for_published(SmallReducer& reducer);
  std::vector<Extent> pieces_of(const spec::Chunk& chunk);
  std::vector<int> pending_peers() const;

  void look_up();
  void throw_if_aborted() const;
  void block(std::uint32_t seen, const std::vector<int>& waited_for);
  void beat();
  [[noreturn]] void fail_timeout();
  [[noreturn]] void fail(ErrorCode code, const std::string& message, int peer) const;
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  Transport& transport_;
  const ExecutorOptions& options_;
  ScratchPool& pool_;
  ScratchPool& shared_pool_;
  const Collective& collective_;
  const observe::BoardOperation operation_;
  // Null where nothing is stored.
  const spec::DirectStores* const stores_;
  OutputWindow* const window_;
  std::atomic<std::uint64_t>& sent_bytes_;
  const std::size_t element_bytes_;
  const bool stream_;
  const int rank_;
  const Deadline deadline_;
  const TimePoint began_;
  TimePoint last_beat_;
  std::size_t round_ = 0;
  std::uint64_t messages_ = 0;
  std::vector<Peer> peers_;
  std::vector<Scratch> scratches_;
  ScratchPool::Block work_block_;
  std::vector<Extent> work_;
  std::vector<Deferred> deferred_;
  // With compression: this rank's inputs as it goes on with them.
  std::vector<ScratchPool::Block> input_copies_;
  std::vector<Outstanding> outstanding_;
  bool window_open_ = false;
  // What has been stored, by the round and place of its send.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<StoredRange>> stored_;
  // Copies of results that lie in private memory, by the first element and their number.
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<std::byte>> copies_;
};

}  // namespace convoy::comm

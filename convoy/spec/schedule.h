// Schedules as data: what each rank does, in which order, as plain lists that are executed, priced and simulated.
//
// Words: a *schedule* has one list of *rounds* for each rank; a round is a list of *operations*. In a round a rank
// first offers all its sends (with the values from before the round), then takes all its receives, then does its
// reductions and copies in the order in which they are written. Messages between two ranks keep their order. A *chunk*
// names elements of a buffer; *scratch* chunks are names for what was received: each is written once, read once by a
// reduction or copy, and need not be memory of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/spec/replica_tree.h"

namespace convoy::spec {

/// Which buffer a chunk lies in.
enum class BufferKind : unsigned char { kInput, kOutput, kScratch };

/// Elements [offset, offset + count) of buffer number `index` of a kind.
/// An input is read only; a rank may have several (one for each partial that it brings). There is one output. A scratch
/// buffer is as long as the chunk that is received into it, and its offset is 0.
struct Chunk {
  /// Which kind of buffer.
  BufferKind kind = BufferKind::kInput;
  /// Which buffer of the kind.
  int index = 0;
  /// The first element.
  std::int64_t offset = 0;
  /// How many elements.
  std::int64_t count = 0;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// What an operation does. Communication: send, receive, reduce, copy. Computation (pipelines): forward, backward for
/// the input, backward for the weights, recompute.
enum class OpKind : unsigned char {
  kSend,
  kReceive,
  kReduce,
  kCopy,
  kForward,
  kBackwardInput,
  kBackwardWeight,
  kRecompute,
};

/// Returns the kind's name as tables and traces show it: "send", "receive", "reduce", "copy", "F", "B", "W", "R".
std::string_view to_string(OpKind kind);

/// One operation of one rank.
struct Operation {
  /// What it does.
  OpKind kind = OpKind::kSend;
  /// Send, receive: the other rank.
  int peer = -1;
  /// Send: what is sent. Receive, reduce, copy: what is written.
  Chunk target;
  /// Reduce: the summands, all as long as the target. Copy: the one source.
  std::vector<Chunk> sources;
  /// Reduce: the order of the sum in postfix: k >= 0 pushes source k, kAdd combines the two values on top.
  std::vector<int> program;
  /// Reduce, copy: whether the target now holds its final value (where a mean divides by the number of contributions).
  bool final = false;
  /// Compute operations: which micro-batch.
  int micro_batch = 0;
  /// Compute operations: which of the rank's model chunks.
  int model_chunk = 0;
};

/// The operations between which a rank does not wait for its own reductions.
using Round = std::vector<Operation>;

/// What one rank does.
using RankRounds = std::vector<Round>;

/// What every rank does in one collective operation.
struct Schedule {
  /// The algorithm, for example "ordered_exchange".
  std::string algorithm;
  /// The operation, for example "all_reduce".
  std::string collective;
  /// Elements of the operation (all-reduce, broadcast: the buffer; reduce-scatter: the input; all-gather: the output).
  std::int64_t elements = 0;
  /// How many values are combined into each element; a mean divides by it. With one, every input is final already.
  int contributions = 1;
  /// The root of a broadcast; -1 where there is none.
  int root = -1;
  /// The elements of each rank's inputs; all of one rank's inputs are equally long.
  std::vector<std::int64_t> input_elements;
  /// The elements of each rank's output.
  std::vector<std::int64_t> output_elements;
  /// How many inputs each rank brings.
  std::vector<int> inputs;
  /// How many scratch buffers each rank has.
  std::vector<int> scratches;
  /// The rounds of each rank.
  std::vector<RankRounds> ranks;
};

/// The leaves of a canonical tree and who carries them: the input of ordered exchanges.
struct OrderedLayout {
  /// Leaves of the tree (replicas).
  int leaves = 1;
  /// The leaves of each rank, from left to right.
  std::vector<ReplicaRange> owners;
};

/// All-reduce that sums along the canonical tree, whoever carries its leaves. Input k of a rank is its k-th maximal
/// subtree. Each rank reduces one shard (borders on canonical blocks), reading all partials of it, then spreads it.
/// Cost:       2 rounds of messages; sends per rank, in elements, (its partials) x (others' shards) + (W - 1) x its
///             shard
Schedule ordered_all_reduce(const OrderedLayout& layout, std::int64_t elements);

/// Reduce-scatter that sums along the canonical tree; rank r's output is shard r (see shard_range).
/// Cost:       1 round of messages; the first half of ordered_all_reduce
Schedule ordered_reduce_scatter(const OrderedLayout& layout, std::int64_t elements);

/// Ring all-reduce. The order of its sums depends on the number of ranks.
/// Cost:       2(W-1) rounds, 2(W-1)/W of the elements sent per rank: twice all of them less parts r+1 and r+2, parts
///             as even as the elements divide
/// Source:     Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 2009
Schedule ring_all_reduce(int ranks, std::int64_t elements);

/// All-gather of parts of any sizes, each rank sending its part to every other.
/// Cost:       1 round; (W-1) x own part sent per rank
Schedule direct_all_gather(const std::vector<std::int64_t>& parts);

/// All-gather of parts of any sizes around a ring.
/// Cost:       W-1 rounds; all parts but the right neighbour's sent per rank
Schedule ring_all_gather(const std::vector<std::int64_t>& parts);

/// Broadcast along a binomial tree. The root's input is copied to every output.
/// Cost:       ceil(log2 W) rounds; W-1 times the elements sent over all ranks
Schedule binomial_broadcast(int ranks, int root, std::int64_t elements);

/// Barrier by dissemination: nobody leaves before everybody entered. Its messages are empty.
/// Cost:       ceil(log2 W) rounds of one empty message a rank
/// Source:     Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, IJPP 1988
Schedule dissemination_barrier(int ranks);

/// What a schedule was proved to do.
struct ScheduleFacts {
  /// The longest chain of rounds, each waiting for the one before it through a message or on the same rank.
  int rounds = 0;
  /// Elements that each rank sends.
  std::vector<std::int64_t> sent_elements;
  /// Messages that each rank sends.
  std::vector<std::int64_t> sent_messages;
  /// Output elements [begin, end) of a rank on which the order of the sum is the same.
  struct Stretch {
    /// Whose output.
    int rank = 0;
    /// The first element.
    std::int64_t begin = 0;
    /// One past the last element.
    std::int64_t end = 0;
    /// The sum as text, such as "((0.0 + 1.0) + 2.0)" where r.k is input k of rank r.
    std::string value;
  };
  /// All outputs, by rank and then in order of elements.
  std::vector<Stretch> outputs;
};

/// Plays a schedule of communication without data and returns what it does.
/// Errors:     kInvalidArgument naming rank, round and operation (all counted from 0) when it cannot finish (a receive
///             that nobody sends, a message of another size, a cycle of waits), leaves a message unread, reads what was
///             never written, writes an input or an output twice as final, uses a scratch chunk more than once or
///             never, adds values of different elements, leaves an output element without a final value, or computes
///             something else than its collective (all_reduce, reduce_scatter, all_gather, broadcast) asks for
/// Cost:       time and memory grow with operations times stretches; meant for up to some hundred ranks
ScheduleFacts validate(const Schedule& schedule);

/// Returns a chunk for people, for example "input 0 [0, 4096)"; scratch chunks show no range.
std::string to_string(const Chunk& chunk);

/// Returns an operation for people, for example "send output [0, 8) to rank 1" or "reduce output [0, 8) = (scratch 0 +
/// input 0 [0, 8)), final".
std::string to_string(const Operation& operation);

/// Returns the schedule for people: a line for each operation under its rank and round.
std::string describe(const Schedule& schedule);

}  // namespace convoy::spec

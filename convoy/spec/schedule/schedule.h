// Schedules as data: what each rank does, in which order, as plain lists that are executed, priced and simulated.
//
// Words: a *schedule* has one list of *rounds* for each rank; a round is a list of *operations*. In a round a rank
// first offers all its sends (with the values from before the round), then takes all its receives, then does its
// reductions and copies in the order in which they are written. Messages between two ranks keep their order. A *chunk*
// names elements of a buffer; *scratch* chunks are names for what was received: each is written once, read once by a
// reduction or copy, and need not be memory of its own. *Work* is memory that lasts for the operation: for what a rank
// holds or sums on behalf of others and passes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/spec/replica_tree.h"

namespace convoy::spec {

/// Which buffer a chunk lies in.
enum class BufferKind : unsigned char { kInput, kOutput, kScratch, kWork };

/// Elements [offset, offset + count) of buffer number `index` of a kind.
/// An input is read only; a rank may have several (one for each partial that it brings). There is one output, and one
/// work buffer, which is written and read freely. A scratch buffer is as long as the chunk that is received into it, and
/// its offset is 0.
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
  /// Elements of the operation (all-reduce, reduce, broadcast: the buffer; reduce-scatter, scatter: the input that is
  /// cut up; all-gather, gather: the output that is put together; all-to-all: what all ranks bring).
  std::int64_t elements = 0;
  /// How many values are combined into each element; a mean divides by it. With one, every input is final already.
  int contributions = 1;
  /// The root of a broadcast, reduce, gather or scatter; -1 where there is none.
  int root = -1;
  /// The elements of each rank's inputs; all of one rank's inputs are equally long.
  std::vector<std::int64_t> input_elements;
  /// The elements of each rank's output.
  std::vector<std::int64_t> output_elements;
  /// How many inputs each rank brings.
  std::vector<int> inputs;
  /// How many scratch buffers each rank has.
  std::vector<int> scratches;
  /// The elements of each rank's work buffer; empty when no rank has one.
  std::vector<std::int64_t> work_elements;
  /// Reduce-scatter, all-gather, gather, scatter: which part of the whole each rank brings or ends with; empty when rank
  /// r's is part r. Parts follow each other in the order of their numbers.
  std::vector<int> part_of;
  /// All-to-all: [s][d] is how many elements rank s brings for rank d. An input holds them by destination, an output by
  /// source.
  std::vector<std::vector<std::int64_t>> counts;
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

}  // namespace convoy::spec

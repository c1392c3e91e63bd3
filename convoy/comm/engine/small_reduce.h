// Small all-reduce: every rank publishes its input, reads all others' and combines them itself, in one step.
//
// It executes the schedule "direct" (everybody sends all to everybody and sums along the canonical tree) on transports
// whose ranks read each other's memory: the sends to all peers are one publication. Its sums have the order of the
// ordered exchange, so where one takes the other's place no bit changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convoy/comm/transport.h"

namespace convoy::comm {

/// What the ranks must agree on in a small all-reduce, hashed.
std::uint64_t small_fingerprint(DType dtype, ReduceOp reduce, std::int64_t elements);

/// One small all-reduce on this rank.
struct SmallReduce {
  /// The operation's number in its group.
  std::uint64_t sequence = 0;
  /// What is combined, and how.
  DType dtype = DType::kFloat32;
  ReduceOp reduce = ReduceOp::kSum;
  /// How many elements.
  std::int64_t elements = 0;
};

/// Combines what all ranks publish, over one transport.
/// Threads:    one caller at a time
class SmallReducer {
 public:
  /// Borrows the transport.
  explicit SmallReducer(Transport& transport);

  /// Returns the largest input in bytes; 0 where the transport cannot publish or there is nobody to publish for.
  std::size_t capacity() const { return capacity_; }
  /// Shows this rank's input to all.
  void publish(const SmallReduce& operation, const std::byte* input);
  /// Returns the first rank whose input is not there, or is of another operation; -1 when all are there.
  int missing(const SmallReduce& operation);
  /// Returns whether all inputs come within a moment of spinning.
  bool spin(const SmallReduce& operation);
  /// Combines the inputs of all ranks, which are there, into contiguous memory.
  void combine_all(const SmallReduce& operation, std::byte* output);

 private:
  Transport& transport_;
  const std::size_t capacity_;
  const int spins_;
  std::vector<int> program_;
  std::vector<const std::byte*> sources_;
};

}  // namespace convoy::comm

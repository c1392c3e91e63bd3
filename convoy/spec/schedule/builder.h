// Puts a schedule together, message by message: both ends of a message are written at once, so that they fit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/spec/blocks.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Where the elements of a range of a vector lie at a rank.
using View = std::function<Chunk(int rank, ElementRange range)>;

/// Returns the view of a whole buffer: input 0, the output, or the work buffer, whose element e is the vector's e.
View buffer_view(BufferKind kind);

/// Returns the view in which element begins[rank] of the vector is the buffer's first.
View buffer_view(BufferKind kind, std::vector<std::int64_t> begins);

/// Returns rank + step on a ring of `ranks` ranks; steps may be negative.
int wrap(int rank, int ranks);

/// Collects the operations of a schedule. Rounds are numbered from 0 and filled in any order; within a round come sends,
/// then receives, then reductions and copies, each in the order of the calls.
class ScheduleBuilder {
 public:
  /// Starts a schedule in which each rank brings one input and has one output, both of all elements. What differs is
  /// set through sizes().
  /// Errors:     kInvalidArgument when there is no rank, or a negative number of elements
  ScheduleBuilder(std::string collective, std::string algorithm, int ranks, std::int64_t elements);

  /// Returns the number of ranks.
  int ranks() const { return static_cast<int>(schedule_.ranks.size()); }
  /// Returns the schedule in the making, to set its sizes.
  Schedule& sizes() { return schedule_; }

  /// Adds a message. One without elements is nothing to either side.
  void transfer(int round, int from, const Chunk& source, int to, const Chunk& target);
  /// Adds a message into a new scratch buffer of `to`, which is returned.
  Chunk take(int round, int from, const Chunk& source, int to);
  /// Adds an empty message.
  void signal(int round, int from, int to);
  /// Adds a reduction; one without elements, or of a chunk alone to itself without being final, is left out.
  void reduce(int round, int rank, const Chunk& target, std::vector<Chunk> sources, std::vector<int> program,
              bool final);
  /// Adds target = left + right.
  void add(int round, int rank, const Chunk& target, const Chunk& left, const Chunk& right, bool final);
  /// Adds a copy; one without elements, or of a chunk to itself, is left out.
  void copy(int round, int rank, const Chunk& target, const Chunk& source);
  /// Gives a rank at least this many elements of work memory.
  void need_work(int rank, std::int64_t elements);

  /// Returns the schedule, every rank with the same number of rounds.
  Schedule finish();

 private:
  Round& at(int round, int rank);

  Schedule schedule_;
};

}  // namespace convoy::spec

// The progress board: what every rank of a group is doing right now, so that the culprit is named and not the rank that
// waits for the culprit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/dtype.h"

namespace convoy::observe {

/// A collective operation as a rank entered it. All ranks must post equal ones for a sequence number.
struct BoardOperation {
  /// The operation's number in its group, counted from 1.
  std::uint64_t sequence = 0;
  /// The collective, for example "all_reduce" (at most 23 characters are kept).
  std::array<char, 24> name{};
  /// The element type.
  DType dtype = DType::kFloat32;
  /// The reduction; without meaning where nothing is reduced.
  ReduceOp reduce = ReduceOp::kSum;
  /// Elements, and the root where there is one.
  std::int64_t elements = 0;
  int root = -1;
  /// A hash of whatever else must agree (algorithm, layout).
  std::uint64_t layout = 0;

  /// Sets the name.
  void set_name(std::string_view text);
  /// Returns the operation for people, for example "all_reduce sum of 5 float32".
  std::string str() const;
  /// Returns whether two ranks mean the same operation.
  bool agrees_with(const BoardOperation& other) const;
};

/// What a rank does at the moment.
enum class BoardPhase : std::uint32_t {
  kOutside = 0,  ///< in no operation: computing, loading, or gone
  kEntered = 1,  ///< waits for the others to enter
  kMoving = 2,   ///< moves bytes
};

/// A rank's line on the board.
struct BoardLine {
  /// The newest operation that the rank entered; 0 before the first.
  std::uint64_t sequence = 0;
  /// What it does.
  BoardPhase phase = BoardPhase::kOutside;
  /// How many messages of that operation it has sent and received.
  std::uint64_t chunk = 0;
  /// The rank whose message it waits for; -1 when for nobody in particular.
  int waits_for = -1;
  /// Its last sign of life, in nanoseconds on the host's steady clock; 0 before the first.
  std::int64_t heartbeat_ns = 0;
  /// The process; 0 when unknown.
  std::int64_t pid = 0;
};

/// Where ranks of a group post what they do and read what others do.
/// Threads:    any; each rank's line is written by that rank only
class ProgressBoard {
 public:
  virtual ~ProgressBoard() = default;
  /// Returns the number of ranks.
  virtual int ranks() const = 0;
  /// Posts that `rank` enters an operation.
  virtual void enter(int rank, const BoardOperation& operation) = 0;
  /// Posts how far `rank` is.
  virtual void update(int rank, BoardPhase phase, std::uint64_t chunk, int waits_for) = 0;
  /// Posts a sign of life.
  virtual void beat(int rank, std::int64_t now_ns, std::int64_t pid) = 0;
  /// Returns a rank's line.
  virtual BoardLine line(int rank) const = 0;
  /// Returns the operation that a rank posted under a sequence number, if it did and it is among the newest kHistory.
  virtual std::optional<BoardOperation> operation(int rank, std::uint64_t sequence) const = 0;

  /// How many operations of each rank are remembered.
  static constexpr std::uint64_t kHistory = 8;
};

/// A board in memory that threads or processes share. Over a local array it is also the board of tests: there is no
/// fake.
class SharedBoard final : public ProgressBoard {
 public:
  /// Returns the bytes that a board of `ranks` ranks takes.
  static std::size_t bytes(int ranks);
  /// Uses memory of at least bytes(ranks), aligned to 64; all zero is an empty board.
  /// Ownership:  borrows the memory while it lives
  SharedBoard(void* memory, int ranks);

  int ranks() const override { return ranks_; }
  void enter(int rank, const BoardOperation& operation) override;
  void update(int rank, BoardPhase phase, std::uint64_t chunk, int waits_for) override;
  void beat(int rank, std::int64_t now_ns, std::int64_t pid) override;
  BoardLine line(int rank) const override;
  std::optional<BoardOperation> operation(int rank, std::uint64_t sequence) const override;

 private:
  struct Slot;
  Slot& slot(int rank) const;

  void* memory_;
  int ranks_;
};

/// Who holds an operation up, by the board.
struct Culprits {
  /// The ranks to blame, in order; empty when the board blames nobody.
  std::vector<int> ranks;
  /// Why, for people: "rank 3 has not entered all_reduce #17 (last sign of life 4.0 s ago, last entered #16)".
  std::string reason;
};

/// Finds who holds up operation `sequence` for a rank that waits in it: the ranks that have not entered it; if all
/// have, those that are silent in it (no heartbeat for `silent_after`); if none is, those at the end of the chains of
/// waits_for. Where a rank is still inside an earlier operation, that one is looked at instead.
/// Cost:       reads each line once
Culprits find_culprits(const ProgressBoard& board, int waiting_rank, std::uint64_t sequence, std::int64_t now_ns,
                       Duration silent_after);

}  // namespace convoy::observe

// The flight recorder: a rank's newest operations with their states and times, written when its group fails.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/mutex.h"
#include "convoy/observe/progress_board.h"

namespace convoy::observe {

/// How far an operation has come on a rank.
enum class FlightState : unsigned char {
  kQueued,  ///< submitted, and others are before it
  kBegun,   ///< entered; others have not
  kMoving,  ///< all ranks have entered, bytes move
  kDone,
  kFailed
};

/// Returns the state for people: "queued", "begun", "moving", "done", "failed".
std::string_view to_string(FlightState state);

/// One operation of one rank. Times are on the host's steady clock, the default-made time where it has not come so far.
struct FlightRecord {
  /// What it is.
  BoardOperation operation;
  /// How far it came.
  FlightState state = FlightState::kQueued;
  /// When it was submitted, when the rank entered it, when all ranks had, and when it was done or failed.
  TimePoint queued, begun, agreed, ended;
  /// Payload bytes that this rank had sent in its group when it ended.
  std::uint64_t sent_bytes = 0;
};

/// Keeps the newest operations.
/// Threads:    any
/// Cost:       a lock without a waiter for each call but small_done
class FlightRecorder {
 public:
  /// How many operations are kept.
  static constexpr std::size_t kKept = 64;

  /// Notes that an operation was submitted.
  void queued(const BoardOperation& operation, TimePoint now);
  /// Notes that this rank has entered it.
  void begun(std::uint64_t sequence, TimePoint now);
  /// Notes that all ranks have.
  void agreed(std::uint64_t sequence, TimePoint now);
  /// Notes that it is over, and how.
  void ended(std::uint64_t sequence, bool failed, TimePoint now, std::uint64_t sent_bytes);
  /// Notes that a small operation was done at once; of those only the newest number is kept.
  void small_done(std::uint64_t sequence) { newest_small_.store(sequence, std::memory_order_relaxed); }

  /// Returns what is kept, in order.
  std::vector<FlightRecord> records() const;
  /// Returns the newest small operation's number; 0 before the first.
  std::uint64_t newest_small() const { return newest_small_.load(std::memory_order_relaxed); }

 private:
  FlightRecord* find(std::uint64_t sequence) CONVOY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::array<FlightRecord, kKept> kept_ CONVOY_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> newest_small_{0};
};

/// A rank as it is told of: by itself, or, where it could not write, by another's view of the board.
struct FlightBoardLine {
  /// What the board said.
  BoardLine line;
  /// How long ago its last sign of life was, in seconds; negative when there was none.
  double silent_s = -1;
};

/// What one rank writes. Times of operations are seconds since 1970, UTC, 0 where an operation has not come so far.
struct FlightLog {
  /// The group's name.
  std::string group;
  /// How often the group was formed anew.
  std::uint64_t generation = 1;
  /// Who writes, and how many ranks there are.
  int rank = 0;
  int ranks = 1;
  /// Where it ran.
  std::string host;
  /// When it was written.
  double written_s = 0;
  /// What the rank failed with, and its code's name.
  std::string code, message;
  /// One operation.
  struct Entry {
    /// Its number, and what it is, for people.
    std::uint64_t sequence = 0;
    std::string what;
    /// How far it came: to_string(FlightState).
    std::string state;
    /// When it came there.
    double queued_s = 0, begun_s = 0, agreed_s = 0, ended_s = 0;
    /// Payload bytes that the rank had sent in its group at its end.
    std::uint64_t sent_bytes = 0;
  };
  /// The newest operations, in order.
  std::vector<Entry> operations;
  /// The newest small operation's number; 0 before the first.
  std::uint64_t newest_small = 0;
  /// The board as this rank saw it at the end.
  std::vector<FlightBoardLine> board;
};

/// Returns what a rank writes of its recorder and its group's board.
FlightLog make_flight_log(const FlightRecorder& recorder, const ProgressBoard& board, const Error& error);

/// Returns the file of a rank in a folder.
std::string flight_path(const std::string& folder, const std::string& group, int rank);

/// Writes the file, making the folder; it need not survive a crash of the machine, so nothing waits for the disk.
/// Errors:     kIo
void write_flight_log(Files& files, const std::string& folder, const FlightLog& log);

/// Reads a file.
/// Errors:     kCorrupt naming the file when it is none of these; kIo
FlightLog read_flight_log(Files& files, const std::string& path);

}  // namespace convoy::observe

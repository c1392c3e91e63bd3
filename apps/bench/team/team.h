// Team: the ranks of a benchmark. They have a group to measure, and a barrier and memory that the group knows nothing of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/shared_memory/shared_segment.h"
#include "convoy/comm/store.h"

namespace convoy::bench {

/// Where ranks meet between measurements; all zero at first.
struct MeetingPoint {
  /// Ranks that are here.
  alignas(64) std::atomic<std::uint32_t> arrived{0};
  /// How often all were here.
  alignas(64) std::atomic<std::uint32_t> rounds{0};
};

/// One rank's view of the ranks.
/// Threads:    the rank's own
class Team {
 public:
  /// Brings the ranks of one host together. `here` is the meeting point of ranks that are threads of this process; null
  /// makes one in memory that processes share.
  /// Collective: all ranks
  Team(comm::Group& group, comm::Store& store, Duration timeout, MeetingPoint* here = nullptr);

  /// Returns the group to measure.
  comm::Group& group() { return group_; }
  /// Returns where ranks find each other.
  comm::Store& store() { return store_; }
  /// Returns this rank's number.
  int rank() const { return group_.rank(); }
  /// Returns how many ranks there are.
  int size() const { return group_.size(); }
  /// Returns the longest wait.
  Duration timeout() const { return timeout_; }

  /// Returns when every rank has called it, all within a microsecond where each has a core.
  /// Blocking:   spins; sleeps in short pieces after some milliseconds
  /// Errors:     kTimeout after the longest wait
  void barrier();
  /// Returns when every rank has called it, and leaves the processors to whoever still works: some libraries have
  /// threads that must send while others are done.
  /// Errors:     kTimeout after the longest wait
  void gather_quietly();
  /// Takes memory of the process's arena that all ranks can write: the same bytes on each. It stays until the end.
  /// Returns the start of each rank's.
  /// Collective: all ranks
  std::vector<std::byte*> share(std::size_t bytes);

  /// Returns each number's largest value over all ranks, everywhere.
  /// Collective: all ranks
  std::vector<double> largest(std::vector<double> values);
  /// Returns every rank's number, everywhere.
  /// Collective: all ranks
  std::vector<std::int64_t> gather(std::int64_t value);

 private:
  void meet(bool quietly);
  const comm::FileMapping& arena_of(std::size_t rank, std::int64_t process);

  comm::Group& group_;
  comm::Store& store_;
  const Duration timeout_;
  comm::FileMapping meeting_memory_;
  MeetingPoint* meeting_ = nullptr;
  std::vector<comm::FileMapping> arenas_;
};

}  // namespace convoy::bench

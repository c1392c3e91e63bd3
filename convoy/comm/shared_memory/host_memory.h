// Memory that the ranks of one host have together: parameters and moments that lie once on each host.
//
// It is an anonymous file (memfd). Under Convoy's launcher it is a part of the job's *state file*, which the launcher
// holds open too: what ranks wrote there outlives each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/comm/group.h"

namespace convoy::comm {

/// The environment variable with the descriptor of the job's state file on this host, as the launcher passes it on.
inline constexpr const char* kStateFileVariable = "CONVOY_STATE_FD";

/// A stretch of memory that all ranks of a group on one host have mapped, all zero when it is made.
/// Ownership:  unmapped when destroyed; its pages are given back once every rank of the host has done so
/// Threads:    any; who writes what is its users' affair
class HostMemory {
 public:
  /// Makes a stretch of at least `bytes` on each host of the group.
  /// Collective: all ranks of the group, with the same size
  /// Errors:     null on all ranks where a rank cannot map its host's memory (processes that do not see each other); kIo
  ///             on all ranks when the system has no memory left, naming the rank
  static std::shared_ptr<HostMemory> join(Group& group, std::size_t bytes);

  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Returns the first byte, on a page's border.
  std::byte* data() const { return data_; }
  /// Returns the bytes that were asked for.
  std::size_t size() const { return size_; }
  /// Returns the ranks of the group on this host, in order.
  const std::vector<int>& ranks() const { return ranks_; }
  /// Returns this rank's place among them.
  int local_rank() const { return local_rank_; }

 private:
  HostMemory() = default;

  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int descriptor_ = -1;
  bool in_state_file_ = false;
  std::int64_t offset_ = 0;
  std::vector<int> ranks_;
  int local_rank_ = 0;
};

/// Returns the ranks of the group that share this rank's host, in order.
std::vector<int> ranks_of_host(const Group& group);

}  // namespace convoy::comm

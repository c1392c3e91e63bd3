// Where the stretches of a flat space lie: in this process alone, or once for all ranks of a host.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "convoy/comm/group.h"

namespace convoy::params {

/// Makes stretches of one kind of memory.
/// Ownership:  a stretch lives as long as tensors over it do; a shared one borrows nothing from the group
class FlatMemory {
 public:
  /// Makes stretches that belong to this process.
  FlatMemory() = default;
  /// Makes stretches that the ranks of each host share, where their processes can; each has at least two ranks somewhere.
  /// Otherwise (one rank on every host, or processes that cannot map each other's memory) they belong to this process.
  /// Collective: all ranks of the group; so are make() and meet() of the result
  /// Ownership:  borrows the group while stretches are made
  /// Errors:     what comm::HostMemory::join throws
  static FlatMemory of_host(comm::Group& group);

  /// Makes a stretch of `elements` elements, all zero.
  /// Errors:     kIo naming the rank when the system has no memory left
  torch::Tensor make(std::int64_t elements, torch::ScalarType type) const;
  /// Returns whether the ranks of a host share stretches.
  bool shared() const { return group_ != nullptr; }
  /// Returns the group whose ranks share; null where nothing is shared.
  comm::Group* group() const { return group_; }
  /// Returns whether this rank fills a stretch with what all of its host start from.
  bool fills() const { return fills_; }
  /// Returns when all ranks have called it; at once where nothing is shared.
  void meet() const;
  /// Returns among how many ranks a stretch's bytes are divided in reports.
  int sharers() const { return sharers_; }

 private:
  comm::Group* group_ = nullptr;
  bool fills_ = true;
  int sharers_ = 1;
};

}  // namespace convoy::params

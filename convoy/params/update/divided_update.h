// The divided update: the ranks of a host update each a share of parameters that lie once in the host's memory.
//
// A rank may be killed in the middle of it. Each rank works block by block and keeps a *journal* in the same memory: what
// it was asked to do, how many blocks are done, and what the block in work held before. So any rank that is left can put
// the last block back and finish the share: the update is always completed, never undone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/shared_memory/host_memory.h"
#include "convoy/params/update/update_kernels.h"

namespace convoy::params {

/// Elements [begin, begin + count) of a flat space, all of one parameter.
struct FlatSlice {
  /// The parameter's number.
  std::size_t slot = 0;
  /// The first element of the flat space.
  std::int64_t begin = 0;
  /// How many elements.
  std::int64_t count = 0;
};

/// What an update is asked to do: the same on all ranks, and all that a survivor must know.
struct UpdateOrder {
  /// The update's number, counted from 1.
  std::int64_t number = 0;
  /// How sums become gradients.
  GradientScale scale;
  /// The learning rate.
  double rate = 0.0;
  /// For each parameter whether it is updated.
  std::vector<bool> used;
};

/// Updates the elements of a slice of at most some thousand elements.
using UpdateBlock = std::function<void(const UpdateOrder& order, const FlatSlice& block)>;

/// Divides updates among the ranks of one host.
/// Threads:    one caller at a time
/// See:        docs/data-parallel.md
class DividedUpdate {
 public:
  /// `stretches` are what an update changes (values and moments), each with the flat space's layout in the host's memory.
  /// Collective: all ranks of the group
  /// Ownership:  borrows group and stretches while it lives
  /// Errors:     what comm::HostMemory::join throws; kInternal where the host's memory cannot be had
  DividedUpdate(comm::Group& group, std::size_t slots, std::size_t element_bytes, std::vector<std::byte*> stretches);

  /// Says who updates what from now on: the share of each rank of the host, by its place on the host.
  void set_shares(std::vector<std::vector<FlatSlice>> shares);

  /// Updates this rank's share, and returns when all ranks of the group have updated theirs.
  /// Collective: all ranks of the group, with the same order
  /// Errors:     what comm::barrier throws when a rank was lost: then settle() may finish
  void run(const UpdateOrder& order, const UpdateBlock& update);

  /// After a failure: finishes update `number` if any rank of the host had begun it, and returns what it was asked to do;
  /// nothing, and no element changed, when none had. `number` is the first that this rank has not seen to its end; it goes
  /// on with the next one until there is nothing, since others may have seen one more. Every survivor of the host calls it;
  /// `lost` are the places of ranks that are certain to run no more. Survivors share the work of the lost ones.
  /// Blocking:   until the host's whole update is finished, at most `limit`
  /// Errors:     kTimeout naming the rank that does not finish its share
  std::optional<UpdateOrder> settle(std::int64_t number, std::span<const int> lost, const UpdateBlock& update,
                                    Duration limit);

  /// Returns how many ranks share an update, and this rank's place among them.
  int ranks() const { return static_cast<int>(memory_->ranks().size()); }
  /// Returns this rank's place on its host.
  int place() const { return memory_->local_rank(); }
  /// Returns how many blocks of its running (or last) update a rank of the host has done.
  std::int64_t blocks_done(int place) const;
  /// Returns the bytes of the journals of all ranks of the host.
  std::size_t journal_bytes() const { return memory_->size(); }

 private:
  struct Journal;
  Journal& journal(int place) const;
  std::byte* old_values(int place) const;
  void begin(const UpdateOrder& order);
  UpdateOrder order_of(const Journal& journal, int place) const;
  void work(int place, const UpdateOrder& order, const UpdateBlock& update);
  void copy_block(int place, const FlatSlice& block, bool back) const;

  comm::Group& group_;
  const std::size_t slots_;
  const std::size_t element_bytes_;
  const std::vector<std::byte*> stretches_;
  const std::size_t stride_;
  const std::shared_ptr<comm::HostMemory> memory_;
  // The blocks of each rank's share.
  std::vector<std::vector<FlatSlice>> blocks_;
};

}  // namespace convoy::params

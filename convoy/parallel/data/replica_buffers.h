// Buffers per replica: each replica has its own running statistics, and one declared merge makes them one.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/params/model.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/stateful.h"

namespace convoy::parallel {

/// How buffers of the replicas become one: kMean averages floating ones along the canonical tree and takes others from
/// replica 0; kFirst takes all from replica 0.
enum class BufferMerge { kMean, kFirst };

/// Returns the merge of a recipe's word.
/// Errors:     kInvalidArgument for an unknown word
BufferMerge to_buffer_merge(const std::string& word);

/// The buffers of the replicas that a rank carries. The module has one set of buffers; a replica's values are put in
/// before its forward pass and taken out after it.
/// Threads:    one caller at a time
class ReplicaBuffers {
 public:
  /// Starts every replica with the module's present values; the layout says which replicas each rank carries.
  ReplicaBuffers(params::Model& model, const spec::OrderedLayout& layout, int group_rank, BufferMerge merge);

  /// Puts a replica's values into the module.
  void load(int replica);
  /// Takes a replica's values out of the module.
  void store(int replica);
  /// Puts the merged values into the module, for evaluation.
  /// Collective: all ranks
  void load_merged(comm::Group& group);
  /// Gives every replica the module's present values.
  void reset_from_module();
  /// Returns the values of all replicas, in order, as bytes.
  /// Collective: all ranks
  std::vector<std::byte> gather(comm::Group& group) const;
  /// Lists "replica.<r>/<buffer>" of this rank's replicas.
  std::vector<spec::StateEntry> state();
  /// Returns the bytes of one replica's buffers.
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Item {
    std::string name;
    torch::Tensor tensor;
    std::int64_t offset = 0;
  };
  std::byte* place(int replica) { return values_.data() + (replica - range_.begin) * bytes_; }

  const int replicas_;
  const std::vector<spec::ReplicaRange> owners_;
  const spec::ReplicaRange range_;
  const BufferMerge merge_;
  std::vector<Item> items_;
  std::int64_t bytes_ = 0;
  std::vector<std::byte> values_;
};

}  // namespace convoy::parallel

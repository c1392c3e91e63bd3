// Stateful: how anything that must survive shows itself, as named pieces of memory with a place in a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"

namespace convoy::spec {

/// How a tensor lies over the ranks: each rank has all of it, or a slice of its flattened elements, or one rank has it.
enum class Placement { kReplicated, kShard, kOwned };

/// Returns the placement's name as manifests write it: "replicated", "shard" or "owned".
std::string_view to_string(Placement placement);

/// A piece of state on this rank: elements [offset, offset + count) of the flattened tensor `name`.
/// Ownership:  borrows the memory from the Stateful that listed it, until that is changed or destroyed
struct StateEntry {
  /// The name, unique over the whole run, for example "parameters/conv1.weight" or "replica.3/bn1.running_mean".
  std::string name;
  /// The shape of the whole tensor; empty for a scalar.
  std::vector<std::int64_t> global_shape;
  /// The type of its elements.
  DType dtype = DType::kFloat32;
  /// How it lies over the ranks.
  Placement placement = Placement::kReplicated;
  /// The first element that this rank holds.
  std::int64_t offset = 0;
  /// How many elements this rank holds.
  std::int64_t count = 0;
  /// Whether this rank is the one that saves this piece (each element of a tensor has exactly one such rank).
  bool owner = false;
  /// The elements.
  std::byte* data = nullptr;
};

/// Returns the number of elements of a shape; 1 for a scalar.
/// Errors:     kInvalidArgument for a negative size or a product beyond 63 bits
std::int64_t element_count(std::span<const std::int64_t> shape);

/// Something whose state can be listed, saved and set. Digests, verification, checkpoints and resharding use nothing
/// else.
/// Threads:    one caller at a time
class Stateful {
 public:
  virtual ~Stateful() = default;
  /// Lists this rank's pieces in canonical order, the same on every rank for the pieces that ranks share.
  /// Ownership:  the memory stays with this object and may be written: load fills it
  virtual std::vector<StateEntry> state() = 0;
  /// Called after the memory of state() was filled from elsewhere, so that derived values can be renewed.
  virtual void loaded() {}
};

}  // namespace convoy::spec

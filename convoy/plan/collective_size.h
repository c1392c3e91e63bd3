// Sizes of collectives: what `convoy bench` measures, `--explain` shows and prices are asked for is one and the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/spec/collectives/registry.h"

namespace convoy::plan {

/// A collective by size.
struct CollectiveSize {
  /// The operation.
  std::string collective;
  /// How many ranks.
  int ranks = 1;
  /// Elements as CollectiveShape counts them.
  std::int64_t elements = 0;
  /// The element type.
  DType dtype = DType::kFloat32;

  /// Returns the bytes of these elements.
  std::int64_t bytes() const;
  /// Returns the shape, with the host of each rank and the most bytes of a message of pipelined algorithms.
  spec::CollectiveShape shape(const std::vector<int>& hosts, std::int64_t chunk_bytes) const;
};

/// Returns the size of about `bytes`: at least one element, and equally many for each rank where the operation divides
/// them; a barrier has none.
CollectiveSize collective_size(const std::string& collective, int ranks, std::int64_t bytes, DType dtype);

/// Returns bus bandwidth over algorithm bandwidth.
/// Source:     NVIDIA, nccl-tests, doc/PERFORMANCE.md
double bus_factor(const std::string& collective, int ranks);

}  // namespace convoy::plan

// Ordered exchanges: sums along the canonical tree over replicas, whoever carries them, so that their bits do not depend
// on the number of ranks or hosts.
//
// Words: a *partial* is the sum of a maximal subtree of the replicas that a rank carries; input k of a rank is its k-th
// partial. A *shard* is the part of the buffer that one rank reduces (borders on canonical blocks). The exchange over
// several hosts is in hierarchical.h.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/blocks.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Returns the layout in which each rank carries one leaf.
OrderedLayout one_leaf_each(int ranks);

/// Returns the segments of an exchange that goes on one after the other: chunk_elements each, rounded so that every
/// rank's shard of a segment is equally many canonical blocks; the last one is what is left. One for 0.
std::vector<ElementRange> ordered_segments(std::int64_t elements, int ranks, std::int64_t chunk_elements);

/// All-reduce in which each rank reduces one shard, reading all partials of it, then spreads it. With chunk_elements
/// the vector is cut into segments: each is spread while the next one is read.
/// Cost:       (segments + 1) rounds of messages; sends per rank, in elements, (its partials) x (others' shards) +
///             (W - 1) x its shard
Schedule ordered_all_reduce(const OrderedLayout& layout, std::int64_t elements, std::int64_t chunk_elements = 0);

/// All-reduce of small buffers: everybody sends all its partials to everybody, and each rank reduces everything.
/// Cost:       1 round of messages; (its partials) x (W - 1) x the elements sent per rank
Schedule ordered_direct_all_reduce(const OrderedLayout& layout, std::int64_t elements);

/// Reduce-scatter; rank r's output is shard r (see shard_range).
/// Cost:       1 round of messages; the first half of ordered_all_reduce
Schedule ordered_reduce_scatter(const OrderedLayout& layout, std::int64_t elements);

/// Reduce: each rank reduces one shard and sends it to the root. Shards lie in work memory.
/// Cost:       2 rounds of messages; (its partials) x (others' shards) sent per rank, and its shard by all but the root
Schedule ordered_reduce(const OrderedLayout& layout, int root, std::int64_t elements);

}  // namespace convoy::spec

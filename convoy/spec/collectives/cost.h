// What each rank sends and how many rounds it takes, in closed form and without building a schedule: the Cost lines of
// the builders, as functions of a shape with its defaults filled in. The tests hold them against what validate counts.
//
// Words as in phases.h: positions, parts, core and extras.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/collectives/registry.h"

namespace convoy::spec::cost {

/// Elements by rank.
using Sent = std::vector<std::int64_t>;

/// All-reduce.
Sent ring_all_reduce(const CollectiveShape& shape);
Sent halving_doubling_all_reduce(const CollectiveShape& shape);
Sent recursive_doubling_all_reduce(const CollectiveShape& shape);
Sent double_binary_tree_all_reduce(const CollectiveShape& shape);
Sent direct_all_reduce(const CollectiveShape& shape);
Sent ordered_all_reduce(const CollectiveShape& shape);
Sent ordered_direct_all_reduce(const CollectiveShape& shape);
Sent ordered_hierarchical_all_reduce(const CollectiveShape& shape);

/// Hierarchical all-reduce, by the numbers of its algorithms in inner_algorithms() and outer_algorithms().
Sent hierarchical_all_reduce(const CollectiveShape& shape, std::size_t inner, std::size_t outer);
/// Its rounds.
int hierarchical_rounds(const CollectiveShape& shape, std::size_t inner, std::size_t outer);

/// Reduce-scatter: everything but the own shard, by whatever way.
Sent all_but_own_shard(const CollectiveShape& shape);
Sent halving_reduce_scatter(const CollectiveShape& shape);
Sent ordered_reduce_scatter(const CollectiveShape& shape);

/// All-gather.
Sent direct_all_gather(const CollectiveShape& shape);
Sent ring_all_gather(const CollectiveShape& shape);
Sent doubling_all_gather(const CollectiveShape& shape);
Sent bruck_all_gather(const CollectiveShape& shape);

/// Broadcast.
Sent binomial_broadcast(const CollectiveShape& shape);
Sent scatter_all_gather_broadcast(const CollectiveShape& shape);
Sent chain_broadcast(const CollectiveShape& shape);

/// Reduce.
Sent binomial_reduce(const CollectiveShape& shape);
Sent halving_gather_reduce(const CollectiveShape& shape);
Sent ordered_reduce(const CollectiveShape& shape);

/// Gather and scatter.
Sent direct_gather(const CollectiveShape& shape);
Sent binomial_gather(const CollectiveShape& shape);
Sent direct_scatter(const CollectiveShape& shape);
Sent binomial_scatter(const CollectiveShape& shape);

/// All-to-all; and what sends nothing, as a barrier does.
Sent direct_all_to_all(const CollectiveShape& shape);
Sent bruck_all_to_all(const CollectiveShape& shape);
Sent nothing(const CollectiveShape& shape);

/// Rounds: 1; W - 1; 2 (W - 1); ceil(log2 W); that of the core and one or two for extras, once or twice; of a pipeline.
int one_round(const CollectiveShape& shape);
int two_rounds(const CollectiveShape& shape);
int ordered_rounds(const CollectiveShape& shape);
int ring_rounds(const CollectiveShape& shape);
int two_ring_rounds(const CollectiveShape& shape);
int log_rounds(const CollectiveShape& shape);
int barrier_rounds(const CollectiveShape& shape);
int core_rounds(const CollectiveShape& shape);
int two_core_rounds(const CollectiveShape& shape);
int double_tree_rounds(const CollectiveShape& shape);
int scatter_ring_rounds(const CollectiveShape& shape);
int chain_rounds(const CollectiveShape& shape);
int core_gather_rounds(const CollectiveShape& shape);
int packed_log_rounds(const CollectiveShape& shape);
int ordered_hierarchical_rounds(const CollectiveShape& shape);

}  // namespace convoy::spec::cost

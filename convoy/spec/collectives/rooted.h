// Collectives with a root: broadcast, reduce, gather, scatter.
//
// Words: the *number* of a rank counts from the root, round the ranks: number 0 is the root, number 1 the rank to its
// right. A binomial tree over numbers: number p > 0 is a child of p less its lowest set bit.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/options.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Broadcast along a binomial tree. The root's input is copied to every output.
/// Cost:       ceil(log2 W) rounds; number p sends the elements once for each k with p < 2^k and p + 2^k < W
Schedule binomial_broadcast(int ranks, int root, std::int64_t elements);

/// Broadcast as a scatter along a binomial tree and an all-gather around a ring, in which no rank is sent what it holds
/// already.
/// Cost:       ceil(log2 W) + W - 1 rounds; number p sends the parts of its subtree but its own, then the elements less
///             the parts of the subtree of number p + 1; the root sends less than 2n
/// Source:     van de Geijn: On global combine operations, JPDC 1994
Schedule scatter_all_gather_broadcast(int ranks, int root, std::int64_t elements);

/// Broadcast along a chain in chunks of options.chunk_elements that follow each other. options.order lays the chain out:
/// it begins at the root and goes on round the order.
/// Cost:       C chunks: C + W - 2 rounds; n sent by each rank but the last
Schedule chain_broadcast(int ranks, int root, std::int64_t elements, const CollectiveOptions& options = {});

/// Reduce along a binomial tree. Ranks inside of it sum in work memory.
/// Cost:       ceil(log2 W) rounds; n sent by each rank but the root
Schedule binomial_reduce(int ranks, int root, std::int64_t elements);

/// Reduce as a reduce-scatter by recursive halving among the largest power of two P of ranks, then a gather along a
/// binomial tree. Extra ranks give their input first. Sums lie in work memory.
/// Cost:       2 log2 P rounds, 1 more with extras; position p of the core sends the elements less its part, then the
///             parts of its subtree; an extra sends n
/// Source:     Rabenseifner: Optimization of collective reduction operations, ICCS 2004
Schedule halving_gather_reduce(int ranks, int root, std::int64_t elements);

/// Gather: each rank sends its part to the root.
/// Cost:       1 round; own part sent per rank
Schedule direct_gather(int root, const std::vector<std::int64_t>& parts);

/// Gather along a binomial tree; ranks inside of it collect in work memory. What crosses the end of the root's output is
/// two messages.
/// Cost:       ceil(log2 W) rounds; each rank but the root sends its subtree's parts
Schedule binomial_gather(int root, const std::vector<std::int64_t>& parts);

/// Scatter: the root sends each rank its part.
/// Cost:       1 round; the root sends all parts but its own
Schedule direct_scatter(int root, const std::vector<std::int64_t>& parts);

/// Scatter along a binomial tree, largest subtrees first.
/// Cost:       ceil(log2 W) rounds; each rank sends its subtree's parts but its own
Schedule binomial_scatter(int root, const std::vector<std::int64_t>& parts);

}  // namespace convoy::spec

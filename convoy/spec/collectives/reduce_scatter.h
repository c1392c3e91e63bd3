// Reduce-scatter: rank r gets shard r (shard_range, whole canonical blocks) of the combination of all inputs. For sums
// that do not depend on ranks see ordered.h.
#pragma once

#include <cstdint>

#include "convoy/spec/schedule/options.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Ring: parts travel to the right and gather one summand at each rank. Sums on the way lie in work memory.
/// Cost:       W-1 rounds; the elements less the own shard sent per rank
/// Source:     Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 2009
Schedule ring_reduce_scatter(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

/// Recursive halving among the largest power of two P of ranks; extra ranks are folded into a neighbour. Sums on the way
/// lie in work memory.
/// Cost:       log2 P rounds, 2 more with extras; the elements less what the position owns sent per rank (its shard and
///             that of its extra, which is sent on); all elements by an extra
/// Source:     Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005
Schedule halving_reduce_scatter(int ranks, std::int64_t elements);

/// Pairwise: in round k each rank gives the rank k to the right its shard. Sums on the way lie in the output.
/// Cost:       W-1 rounds; the elements less the own shard sent per rank
Schedule pairwise_reduce_scatter(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

}  // namespace convoy::spec

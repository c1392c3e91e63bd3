// All-gather: every rank gets all ranks' inputs, one after the other in rank order. Parts have any sizes, also none.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/options.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Each rank sends its part to every other.
/// Cost:       1 round; (W-1) x own part sent per rank
Schedule direct_all_gather(const std::vector<std::int64_t>& parts, const CollectiveOptions& options = {});

/// Parts travel around a ring.
/// Cost:       W-1 rounds; all parts but the right neighbour's sent per rank
Schedule ring_all_gather(const std::vector<std::int64_t>& parts, const CollectiveOptions& options = {});

/// Recursive doubling: what is held is exchanged with the rank at distance 1, 2, 4 ... P/2, P the largest power of two
/// among W. An extra rank gives its part to a neighbour first and gets everything else at the end.
/// Cost:       log2 P rounds, 2 more with extras; the parts of 2^k positions in round k sent per rank, all parts but the
///             extra's by the partner of an extra; its own part by an extra
/// Source:     Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005
Schedule doubling_all_gather(const std::vector<std::int64_t>& parts);

/// Bruck: in round k a rank sends the parts that it holds, at most what is missing, to the rank 2^k to the left. Parts
/// are written where they belong at once, so a run that crosses the end of the buffer is two messages.
/// Cost:       ceil(log2 W) rounds for any W; min(2^k, W - 2^k) parts from the own one on in round k
/// Source:     Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications, TPDS 1997
Schedule bruck_all_gather(const std::vector<std::int64_t>& parts);

}  // namespace convoy::spec

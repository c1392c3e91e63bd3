// All-reduce: every rank gets the combination of all ranks' inputs. For algorithms whose sums do not depend on ranks see
// ordered.h; for several hosts see hierarchical.h.
//
// Words: W is the number of ranks, n the elements, P the largest power of two that is at most W. An *extra* is one of
// the W - P ranks that are folded into a partner first.
#pragma once

#include <cstdint>

#include "convoy/spec/schedule/options.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Ring all-reduce: parts gather a summand at each rank, then go round once more.
/// Cost:       2(W-1) rounds, 2(W-1)/W of the elements sent per rank: twice all of them less parts p+1 and p+2 for
///             position p, parts as even as the elements divide
/// Source:     Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 2009
Schedule ring_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

/// Recursive halving, then recursive doubling, among P ranks; extras give their input first and get the result after.
/// Cost:       2 log2 P rounds, and 2 more with extras; 2n(P-1)/P sent per rank of the core (n less its part of P, then
///             the parts of 2^k positions in round k), and n more by the partner of an extra; n by an extra
/// Source:     Rabenseifner: Optimization of collective reduction operations, ICCS 2004
Schedule halving_doubling_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

/// Recursive doubling: all of the vector is exchanged with the rank at distance 1, 2, 4 ... P/2.
/// Cost:       log2 P rounds, and 2 more with extras; n log2 P sent per rank of the core, n more by the partner of an
///             extra; n by an extra
/// Source:     Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005
Schedule recursive_doubling_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

/// Double binary tree: each of two trees sums half of the vector up and sends it down, in chunks of
/// options.chunk_elements that follow each other. A rank inside one tree is a leaf of the other (for odd W but one).
/// Cost:       C chunks of a half: C - 1 + 2 ceil(log2 W) rounds; sent per rank, for each tree, half of the elements
///             for its parent and for each of its children: at most 2n
/// Source:     Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009
Schedule double_binary_tree_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

/// Direct exchange: everybody sends all to everybody and sums in the order of positions, along the canonical tree.
/// Cost:       1 round; (W-1) n sent per rank
Schedule direct_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options = {});

}  // namespace convoy::spec

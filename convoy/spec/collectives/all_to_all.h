// All-to-all: each rank brings a block for every rank and ends with a block from every rank. An input holds its blocks
// by destination, an output by source. counts[s][d] is the size of the block from s to d.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Sizes of an all-to-all by source and destination.
using BlockCounts = std::vector<std::vector<std::int64_t>>;

/// Returns the counts in which each rank brings `block` elements for each rank.
BlockCounts equal_blocks(int ranks, std::int64_t block);

/// Each rank sends all its blocks at once.
/// Cost:       1 round; all blocks but the one for itself sent per rank
Schedule direct_all_to_all(const BlockCounts& counts);

/// Pairwise: in round k each rank sends to the rank k to the right and takes from the rank k to the left.
/// Cost:       W-1 rounds; all blocks but the one for itself sent per rank
Schedule pairwise_all_to_all(const BlockCounts& counts);

/// Bruck, for small equal blocks: a block travels by the binary digits of its distance; in round k all blocks whose
/// distance has digit k are packed into one message to the rank 2^k to the right. The packing lies in work memory.
/// Cost:       ceil(log2 W) rounds and one of packing; in round k as many blocks as numbers below W have digit k, W/2 or
///             fewer, sent per rank
/// Source:     Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications, TPDS 1997
Schedule bruck_all_to_all(int ranks, std::int64_t block);

}  // namespace convoy::spec

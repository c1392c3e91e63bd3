// Phases after which every position holds the sum of a range: the algorithms that hierarchical schedules put together.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/phases/phases.h"

namespace convoy::spec {

/// Every rank has a contribution to `range` at `from` and gets the sum at `results`, where it also sums on the way.
/// `chunk` is the most elements of a message where an algorithm is pipelined; 0 means no cutting.
using AllReducePhase = int (*)(ScheduleBuilder& builder, int round, const std::vector<int>& ranks, ElementRange range,
                               const View& from, const View& results, std::int64_t chunk);

/// Ring: a reduce-scatter and an all-gather to the right.
/// Cost:       2(W-1) rounds; twice the range less the parts of r+1 and r+2
int ring_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks, ElementRange range,
                          const View& from, const View& results, std::int64_t chunk);

/// Recursive halving, then recursive doubling, on the core; extras fold in before and get the result after.
/// Cost:       2 log2 P rounds, 2 more with extras; 2(P-1)/P of the range, the whole of it once more between pairs
int halving_doubling_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                      ElementRange range, const View& from, const View& results, std::int64_t chunk);

/// Recursive doubling: whole vectors are exchanged with the position at distance 1, 2 ... P/2.
/// Cost:       log2 P rounds, 2 more with extras; the range in each
int recursive_doubling_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                        ElementRange range, const View& from, const View& results, std::int64_t chunk);

/// Two binary trees, each for half of the range, so laid that a rank inside of one is a leaf of the other; chunks flow
/// up and down in a pipeline.
/// Cost:       chunks of a half - 1 + 2 ceil(log2 W) rounds; at most twice the range
int double_binary_tree_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                        ElementRange range, const View& from, const View& results, std::int64_t chunk);

/// Everybody sends everything to everybody and sums along the canonical tree over positions.
/// Cost:       1 round; W-1 times the range
int direct_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks, ElementRange range,
                            const View& from, const View& results, std::int64_t chunk);

/// One of the trees of double_binary_tree_all_reduce_phase: by position, whose child it is; -1 for the root.
/// Source:     Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009
std::vector<int> binary_tree_parents(int size, bool second);

}  // namespace convoy::spec

// The building blocks of collective schedules: each moves the values of one vector among the ranks of a team.
//
// Words: a *team* is a list of ranks; the *position* of a rank is its place in the list. The *vector* is a range of
// elements, cut into one *part* for each position, some perhaps empty. *From* is where a rank's contribution lies,
// *sums* where it may sum on the way, *results* where its finished part goes, *whole* where the whole vector comes to
// lie. Views may name the same memory. The *core* of a team is as many positions as the largest power of two below its
// size; each *extra* rank is folded into one of the core.
//
// Each phase adds its operations from round `round` on and returns the first round after it.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/builder.h"

namespace convoy::spec {

/// Ranks that work on a vector, and the part of it that each finishes or brings.
struct Team {
  /// The ranks by position.
  std::vector<int> ranks;
  /// The parts by position.
  std::vector<ElementRange> parts;
  /// Returns how many ranks there are.
  int size() const { return static_cast<int>(ranks.size()); }
  /// Returns the rank at a position, counted round the team.
  int rank(int position) const { return ranks[static_cast<std::size_t>(wrap(position, size()))]; }
  /// Returns the part of a position, counted round the team.
  ElementRange part(int position) const { return parts[static_cast<std::size_t>(wrap(position, size()))]; }
  /// Returns the range from the first part to the last one of positions [begin, end), which follow each other.
  ElementRange span(int begin, int end) const { return {part(begin).begin, part(end - 1).end}; }
};

/// Returns the team of these ranks with parts as even as the range divides, down to one element.
Team even_team(std::vector<int> ranks, ElementRange range);

/// Returns `order`, or 0, 1, 2 ... when it is empty.
/// Errors:     kInvalidArgument when it does not name each of the ranks once
std::vector<int> ranks_in_order(int ranks, const std::vector<int>& order);

/// Returns the smallest k with 2^k >= n.
int ceil_log2(int n);

/// A team reduced to a power of two. Extra position 2i + 1 is folded into position 2i.
struct Folded {
  /// The core; the part of a position includes that of the extra folded into it.
  Team core;
  /// For each position of the core the extra rank folded into it, or -1.
  std::vector<int> extras;
  /// For each position of the core its own part, and the extra's.
  std::vector<ElementRange> own_parts;
  std::vector<ElementRange> extra_parts;
};

/// Folds a team; parts of positions follow each other.
Folded fold(const Team& team);

/// Returns a view that is `paired` at ranks of the core with an extra, and `alone` elsewhere.
View view_of_core(const Folded& folded, const View& paired, const View& alone);

/// Each extra gives its contribution to `range` to its partner, which adds its own into `sums`. One round, if any.
int fold_in(ScheduleBuilder& builder, int round, const Folded& folded, ElementRange range, const View& from,
            const View& sums);

/// Each partner of an extra gives it `range`. One round, if any.
int fold_out(ScheduleBuilder& builder, int round, const Folded& folded, ElementRange range, const View& whole);

/// A team of one: its contribution is the sum.
int settle(ScheduleBuilder& builder, int round, int rank, ElementRange range, const View& from, const View& results,
           bool final);

/// Everybody sends each part to its owner, who sums all contributions along the canonical tree over positions.
/// Cost:       1 round; the vector less its own part
int direct_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& results,
                          bool final);

/// In round k position p sends the part of p + k to it, and adds what p - k sends.
/// Cost:       W-1 rounds; the vector less its own part
int pairwise_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                            const View& results, bool final);

/// Parts travel to the right and gather one contribution at each position; the part of p starts at p + 1.
/// Cost:       W-1 rounds; the vector less its own part
int ring_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                        const View& results, bool final);

/// Halves of what is left are exchanged with the position at distance W/2, W/4 ... 1. W is a power of two.
/// Cost:       log2 W rounds; the vector less its own part
int halving_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                           const View& results, bool final);

/// The same for any team: folded first, and what belongs to extras sent to them at the end.
int folded_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                          const View& results, bool final);

/// Everybody sends its part to everybody. `own` is where it lies before.
/// Cost:       1 round; W-1 times its part
int direct_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole);

/// Parts travel to the right.
/// Cost:       W-1 rounds; the vector less the right neighbour's part
int ring_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole);

/// What is held is exchanged with the position at distance 1, 2 ... W/2. W is a power of two.
/// Cost:       log2 W rounds; 2^k parts in round k
int doubling_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole);

/// The same for any team: extras give their part first, and get the rest at the end.
int folded_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole);

/// In round k position p sends the parts that it holds, at most what is missing, to p - 2^k. They are written where they
/// belong at once; a run of parts that crosses the end of the vector is two messages.
/// Cost:       ceil(log2 W) rounds; (W-1) parts when they are equal
int bruck_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole);

/// Position 0 collects all parts along a binomial tree. `own` is where a part lies before, `whole` where a position
/// holds what it passes on. A range across element `seam` is two messages.
/// Cost:       ceil(log2 W) rounds; position p sends its subtree's parts once
int binomial_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole,
                    std::int64_t seam = 0);

/// Position 0 deals all parts along a binomial tree, the largest subtree first; the reverse of binomial_gather.
int binomial_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& whole, const View& results,
                     std::int64_t seam = 0);

/// Returns the first position after the binomial subtree of `position` in a team of `size`.
int subtree_end(int position, int size);

}  // namespace convoy::spec

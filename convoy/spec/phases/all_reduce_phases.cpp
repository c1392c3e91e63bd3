// All-reduce phases. The trees number positions in order: position p > 0 lies as many levels above the leaves as p has
// trailing zero bits, and position 0 is the root.
#include "convoy/spec/phases/all_reduce_phases.h"

#include <algorithm>
#include <utility>

namespace convoy::spec {
namespace {

// A tree over positions, with what a pipeline needs to know of it.
struct Tree {
  std::vector<int> parents;
  std::vector<std::vector<int>> children;
  // Rounds after which a position's own sum of a chunk is complete, counted from the round in which leaves send it.
  std::vector<int> heights;
  // Steps from the root.
  std::vector<int> depths;
  int root = 0;
};

Tree make_tree(int size, bool second) {
  Tree tree;
  const auto count = static_cast<std::size_t>(size);
  tree.parents = binary_tree_parents(size, second);
  tree.children.resize(count);
  tree.heights.assign(count, 0);
  tree.depths.assign(count, 0);
  for (int p = 0; p < size; ++p) {
    const int parent = tree.parents[static_cast<std::size_t>(p)];
    if (parent < 0) {
      tree.root = p;
    } else {
      tree.children[static_cast<std::size_t>(parent)].push_back(p);
    }
    int above = 0;
    for (int at = parent; at >= 0; at = tree.parents[static_cast<std::size_t>(at)]) {
      ++above;
      int& height = tree.heights[static_cast<std::size_t>(at)];
      height = std::max(height, above);
    }
    tree.depths[static_cast<std::size_t>(p)] = above;
  }
  return tree;
}

// Chunks of a range; one chunk when `chunk` is 0.
std::vector<ElementRange> chunks_of(ElementRange range, std::int64_t chunk) {
  std::vector<ElementRange> chunks;
  const std::int64_t length = chunk > 0 ? chunk : std::max<std::int64_t>(1, range.size());
  for (std::int64_t begin = range.begin; begin < range.end; begin += length) {
    chunks.push_back({begin, std::min(range.end, begin + length)});
  }
  return chunks;
}

// Sums one chunk up the tree and spreads it down; its leaves send in round `round`. Returns the first round after it.
int run_tree(ScheduleBuilder& builder, int round, const Tree& tree, const std::vector<int>& ranks, ElementRange chunk,
             const View& from, const View& results) {
  const auto rank_at = [&](int position) { return ranks[static_cast<std::size_t>(position)]; };
  const int top = tree.heights[static_cast<std::size_t>(tree.root)];
  int last = round + top;
  for (int p = 0; p < static_cast<int>(ranks.size()); ++p) {
    const auto at = static_cast<std::size_t>(p);
    const int rank = rank_at(p);
    const bool root = p == tree.root;
    if (tree.children[at].empty()) continue;
    // All children are heard in one round, so that one reduction takes them; smaller positions stand on the left.
    const int heard = round + tree.heights[at] - 1;
    std::vector<Chunk> summands;
    std::vector<int> program;
    bool own_added = false;
    const auto push = [&](const Chunk& summand) {
      program.push_back(static_cast<int>(summands.size()));
      if (!summands.empty()) program.push_back(kAdd);
      summands.push_back(summand);
    };
    for (const int child : tree.children[at]) {
      if (!own_added && child > p) {
        push(from(rank, chunk));
        own_added = true;
      }
      const bool leaf = tree.children[static_cast<std::size_t>(child)].empty();
      push(builder.take(heard, rank_at(child), (leaf ? from : results)(rank_at(child), chunk), rank));
    }
    if (!own_added) push(from(rank, chunk));
    builder.reduce(heard, rank, results(rank, chunk), std::move(summands), std::move(program), root);
    const int told = round + top + tree.depths[at];
    for (const int child : tree.children[at]) {
      builder.transfer(told, rank, results(rank, chunk), rank_at(child), results(rank_at(child), chunk));
      last = std::max(last, told + 1);
    }
  }
  return last;
}

}  // namespace

std::vector<int> binary_tree_parents(int size, bool second) {
  std::vector<int> parents(static_cast<std::size_t>(size), -1);
  for (int p = 1; p < size; ++p) {
    // Of the two positions one level up, next to the subtree of p, one is an odd multiple of that level's step.
    const int step = p & -p;
    const int up = ((p - step) | (2 * step));
    parents[static_cast<std::size_t>(p)] = up < size ? up : p - step;
  }
  if (!second) return parents;
  // The mirror image makes odd positions even where their number is even; a shift by one does it where it is odd.
  const auto moved = [&](int p) { return size % 2 == 0 ? size - 1 - p : (p + 1) % size; };
  std::vector<int> others(static_cast<std::size_t>(size), -1);
  for (int p = 0; p < size; ++p) {
    const int parent = parents[static_cast<std::size_t>(p)];
    others[static_cast<std::size_t>(moved(p))] = parent < 0 ? -1 : moved(parent);
  }
  return others;
}

int ring_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks, ElementRange range,
                          const View& from, const View& results, std::int64_t) {
  // The part with number p starts at position p and is complete at p - 1, who owns it.
  Team team = even_team(ranks, range);
  std::rotate(team.parts.begin(), team.parts.begin() + 1, team.parts.end());
  round = ring_reduce_scatter(builder, round, team, from, results, results, true);
  return team.size() == 1 ? round : ring_all_gather(builder, round, team, results, results);
}

int halving_doubling_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                      ElementRange range, const View& from, const View& results, std::int64_t) {
  Folded folded = fold(even_team(ranks, range));
  folded.core = even_team(folded.core.ranks, range);
  round = fold_in(builder, round, folded, range, from, results);
  const View source = view_of_core(folded, results, from);
  round = halving_reduce_scatter(builder, round, folded.core, source, results, results, true);
  if (folded.core.size() == 1) return round;
  round = doubling_all_gather(builder, round, folded.core, results, results);
  return fold_out(builder, round, folded, range, results);
}

int recursive_doubling_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                        ElementRange range, const View& from, const View& results, std::int64_t) {
  const Folded folded = fold(even_team(ranks, range));
  const int size = folded.core.size();
  if (size == 1) return settle(builder, round, ranks[0], range, from, results, true);
  round = fold_in(builder, round, folded, range, from, results);
  const View first = view_of_core(folded, results, from);
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    const View& source = distance == 1 ? first : results;
    const bool last = 2 * distance == size;
    for (int p = 0; p < size; ++p) {
      if ((p & distance) != 0) continue;
      const int lower = folded.core.rank(p);
      const int upper = folded.core.rank(p + distance);
      const Chunk from_lower = builder.take(round, lower, source(lower, range), upper);
      const Chunk from_upper = builder.take(round, upper, source(upper, range), lower);
      // Both sum in the same order, so that all ranks get the same bits.
      builder.add(round, lower, results(lower, range), source(lower, range), from_upper, last);
      builder.add(round, upper, results(upper, range), from_lower, source(upper, range), last);
    }
  }
  return fold_out(builder, round, folded, range, results);
}

int double_binary_tree_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks,
                                        ElementRange range, const View& from, const View& results, std::int64_t chunk) {
  const int size = static_cast<int>(ranks.size());
  if (size == 1) return settle(builder, round, ranks[0], range, from, results, true);
  int last = round;
  for (const bool second : {false, true}) {
    const ElementRange half = shard_range(range.size(), 2, second ? 1 : 0, 1);
    const Tree tree = make_tree(size, second);
    int begin = round;
    for (const ElementRange& piece : chunks_of({range.begin + half.begin, range.begin + half.end}, chunk)) {
      last = std::max(last, run_tree(builder, begin++, tree, ranks, piece, from, results));
    }
  }
  return last;
}

int direct_all_reduce_phase(ScheduleBuilder& builder, int round, const std::vector<int>& ranks, ElementRange range,
                            const View& from, const View& results, std::int64_t) {
  // A reduce-scatter in which everybody's part is everything.
  const Team team{ranks, std::vector<ElementRange>(ranks.size(), range)};
  return direct_reduce_scatter(builder, round, team, from, results, true);
}

}  // namespace convoy::spec

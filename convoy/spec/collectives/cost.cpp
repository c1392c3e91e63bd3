// The Cost lines as arithmetic. Nothing here looks at a schedule.
#include "convoy/spec/collectives/cost.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "convoy/spec/blocks.h"
#include "convoy/spec/collectives/hierarchical.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/phases/all_reduce_phases.h"
#include "convoy/spec/phases/sizes.h"

namespace convoy::spec::cost {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// How a team of W positions folds: positions 2i and 2i + 1 for i < extras, one position each for the others.
struct Core {
  int size = 1;
  int extras = 0;
  explicit Core(int ranks)
      : size(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), extras(ranks - size) {}
  bool paired(int c) const { return c < extras; }
  int position(int c) const { return paired(c) ? 2 * c : c + extras; }
  int rounds() const { return ceil_log2(size); }
};

// The parts of the core's positions, each with its extra's.
Sizes core_sizes(const Core& core, const Sizes& parts) {
  std::vector<std::int64_t> sizes;
  for (int c = 0; c < core.size; ++c)
    sizes.push_back(parts.sum(core.position(c), core.position(c) + (core.paired(c) ? 2 : 1)));
  return Sizes(std::move(sizes));
}

// What recursive doubling of parts sends: the block of 2^k positions around c in each round.
std::int64_t doubling(const Sizes& parts, int c) {
  std::int64_t sent = 0;
  for (int distance = 1; distance < parts.count(); distance *= 2) {
    const int base = c / distance * distance;
    sent += parts.sum(base, base + distance);
  }
  return sent;
}

Sent ring_reduce(std::int64_t n, int ranks) {
  const Sizes parts = Sizes::even(n, ranks);
  Sent sent(at(ranks), 0);
  for (int p = 0; p < ranks && ranks > 1; ++p) sent[at(p)] = 2 * n - parts[p + 1] - parts[p + 2];
  return sent;
}

Sent halving_doubling(std::int64_t n, int ranks) {
  const Core core(ranks);
  const Sizes parts = Sizes::even(n, core.size);
  Sent sent(at(ranks), n);  // an extra
  for (int c = 0; c < core.size; ++c) {
    sent[at(core.position(c))] = n - parts[c] + doubling(parts, c) + (core.paired(c) ? n : 0);
  }
  return sent;
}

Sent recursive_doubling(std::int64_t n, int ranks) {
  const Core core(ranks);
  Sent sent(at(ranks), n);
  for (int c = 0; c < core.size; ++c) sent[at(core.position(c))] = n * (core.rounds() + (core.paired(c) ? 1 : 0));
  return sent;
}

Sent double_binary_tree(std::int64_t n, int ranks) {
  Sent sent(at(ranks), 0);
  for (const bool second : {false, true}) {
    const std::int64_t half = shard_range(n, 2, second ? 1 : 0, 1).size();
    const std::vector<int> parents = binary_tree_parents(ranks, second);
    for (int p = 0; p < ranks; ++p) {
      if (parents[at(p)] < 0) continue;
      sent[at(p)] += half;
      sent[at(parents[at(p)])] += half;
    }
  }
  return sent;
}

Sent direct(std::int64_t n, int ranks) { return Sent(at(ranks), n * (ranks - 1)); }

using AllReduceSent = Sent (*)(std::int64_t n, int ranks);
constexpr AllReduceSent kOuter[] = {direct, ring_reduce, halving_doubling, recursive_doubling, double_binary_tree};

// From positions to ranks.
Sent by_rank(const Sent& by_position, const std::vector<int>& order) {
  if (order.empty()) return by_position;
  Sent sent(by_position.size());
  for (std::size_t p = 0; p < order.size(); ++p) sent[at(order[p])] = by_position[p];
  return sent;
}

Sent folded_reduce_scatter(const Sizes& parts) {
  const Core core(parts.count());
  const Sizes owned = core_sizes(core, parts);
  Sent sent(at(parts.count()), parts.all());
  for (int c = 0; c < core.size; ++c) {
    const int p = core.position(c);
    sent[at(p)] = parts.all() - owned[c] + (core.paired(c) ? parts[p + 1] : 0);
  }
  return sent;
}

Sent folded_all_gather(const Sizes& parts) {
  const Core core(parts.count());
  const Sizes owned = core_sizes(core, parts);
  Sent sent(at(parts.count()), 0);
  for (int c = 0; c < core.size; ++c) {
    const int p = core.position(c);
    sent[at(p)] = doubling(owned, c);
    if (!core.paired(c)) continue;
    sent[at(p)] += parts.all() - parts[p + 1];
    sent[at(p + 1)] = parts[p + 1];
  }
  return sent;
}

// The parts as the ranks' positions from the root see them.
Sizes from_root(const CollectiveShape& shape) {
  std::vector<std::int64_t> sizes = shape.parts;
  std::rotate(sizes.begin(), sizes.begin() + shape.root, sizes.end());
  return Sizes(std::move(sizes));
}

// From numbers that count from the root to ranks.
Sent from_numbers(const CollectiveShape& shape, const Sent& by_number) {
  Sent sent(by_number.size());
  for (int number = 0; number < shape.ranks; ++number) {
    sent[at(wrap(shape.root + number, shape.ranks))] = by_number[at(number)];
  }
  return sent;
}

std::int64_t partials(const CollectiveShape& shape, int rank) {
  return static_cast<std::int64_t>(maximal_subtrees(shape.layout.leaves, shape.layout.owners[at(rank)]).size());
}

std::int64_t chunks(std::int64_t elements, std::int64_t chunk) {
  return chunk > 0 ? (elements + chunk - 1) / chunk : 1;
}

int at_least_one(int rounds) { return std::max(1, rounds); }

// Both trees are ceil(log2 W) high; the first has the longer half.
int double_tree(std::int64_t n, int ranks, std::int64_t chunk) {
  if (ranks == 1) return 1;
  return static_cast<int>(chunks(shard_range(n, 2, 0, 1).size(), chunk)) - 1 + 2 * ceil_log2(ranks);
}

int core_and_extras(int ranks, int times) {
  const Core core(ranks);
  return at_least_one(times * core.rounds() + (core.extras > 0 ? 2 : 0));
}

int outer_rounds(std::size_t outer, std::int64_t n, int ranks) {
  switch (outer) {
    case 0: return 1;
    case 1: return at_least_one(2 * (ranks - 1));
    case 2: return core_and_extras(ranks, 2);
    case 3: return core_and_extras(ranks, 1);
    default: return double_tree(n, ranks, 0);
  }
}

// Rounds of the reduce-scatter inside a host; the all-gather after it has as many.
int inner_rounds(std::size_t inner, int ranks) {
  if (inner == 0) return 1;
  return inner == 1 ? at_least_one(ranks - 1) : core_and_extras(ranks, 1);
}

// What hierarchical schedules know of the hosts.
struct Hosts {
  std::vector<std::vector<int>> ranks;
  Sizes shards;
  Hosts(const CollectiveShape& shape, std::int64_t elements, std::int64_t block)
      : ranks(ranks_by_host(shape.ranks, shape.hosts)) {
    std::size_t least = ranks.front().size();
    for (const std::vector<int>& host : ranks) least = std::min(least, host.size());
    std::vector<std::int64_t> sizes;
    for (std::size_t s = 0; s < least; ++s) {
      sizes.push_back(shard_range(elements, static_cast<int>(least), static_cast<int>(s), block).size());
    }
    shards = Sizes(std::move(sizes));
  }
  // The parts of a host's ranks: the shards, then nothing.
  Sizes parts(const std::vector<int>& host) const {
    std::vector<std::int64_t> sizes(host.size(), 0);
    for (int s = 0; s < shards.count(); ++s) sizes[at(s)] = shards[s];
    return Sizes(std::move(sizes));
  }
};

// What one segment of a hierarchical all-reduce adds.
void add_segment(Sent& sent, const Hosts& hosts, std::size_t inner, std::size_t outer) {
  for (const std::vector<int>& host : hosts.ranks) {
    const Sizes parts = hosts.parts(host);
    const int size = parts.count();
    const Sent halved = folded_reduce_scatter(parts);
    const Sent doubled = folded_all_gather(parts);
    for (int l = 0; l < size && size > 1; ++l) {
      std::int64_t& own = sent[at(host[at(l)])];
      own += inner == 2 ? halved[at(l)] + doubled[at(l)] : parts.all() - parts[l];
      if (inner == 0) own += (size - 1) * parts[l];
      if (inner == 1) own += parts.all() - parts[l + 1];
    }
  }
  for (int s = 0; s < hosts.shards.count(); ++s) {
    const Sent between = kOuter[outer](hosts.shards[s], static_cast<int>(hosts.ranks.size()));
    for (std::size_t h = 0; h < hosts.ranks.size() && hosts.ranks.size() > 1; ++h) {
      sent[at(hosts.ranks[h][at(s)])] += between[h];
    }
  }
}

}  // namespace

Sent ring_all_reduce(const CollectiveShape& shape) {
  return by_rank(ring_reduce(shape.elements, shape.ranks), shape.options.order);
}
Sent halving_doubling_all_reduce(const CollectiveShape& shape) {
  return by_rank(halving_doubling(shape.elements, shape.ranks), shape.options.order);
}
Sent recursive_doubling_all_reduce(const CollectiveShape& shape) {
  return by_rank(recursive_doubling(shape.elements, shape.ranks), shape.options.order);
}
Sent double_binary_tree_all_reduce(const CollectiveShape& shape) {
  return by_rank(double_binary_tree(shape.elements, shape.ranks), shape.options.order);
}
Sent direct_all_reduce(const CollectiveShape& shape) { return direct(shape.elements, shape.ranks); }

Sent ordered_all_reduce(const CollectiveShape& shape) {
  Sent sent(static_cast<std::size_t>(shape.ranks), 0);
  for (const ElementRange& segment : ordered_segments(shape.elements, shape.ranks, shape.options.chunk_elements)) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const std::int64_t own = shard_range(segment.size(), shape.ranks, rank).size();
      sent[at(rank)] += partials(shape, rank) * (segment.size() - own) + (shape.ranks - 1) * own;
    }
  }
  return sent;
}

Sent ordered_direct_all_reduce(const CollectiveShape& shape) {
  Sent sent;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    sent.push_back(partials(shape, rank) * (shape.ranks - 1) * shape.elements);
  }
  return sent;
}

Sent ordered_hierarchical_all_reduce(const CollectiveShape& shape) {
  const Hosts hosts(shape, shape.elements, kBlockElements);
  const int count = static_cast<int>(hosts.ranks.size());
  // The replicas of a host follow each other, so its first leaf says where it stands.
  std::vector<ReplicaRange> leaves(hosts.ranks.size());
  std::vector<int> by_leaves(hosts.ranks.size());
  std::iota(by_leaves.begin(), by_leaves.end(), 0);
  for (std::size_t h = 0; h < hosts.ranks.size(); ++h) {
    for (const int rank : hosts.ranks[h]) {
      const ReplicaRange own = shape.layout.owners[at(rank)];
      if (own.size() > 0) leaves[h] = {leaves[h].size() > 0 ? leaves[h].begin : own.begin, own.end};
    }
  }
  std::stable_sort(by_leaves.begin(), by_leaves.end(),
                   [&](int a, int b) { return leaves[at(a)].begin < leaves[at(b)].begin; });
  Sent sent(at(shape.ranks), 0);
  for (const ElementRange& segment :
       ordered_segments(shape.elements, hosts.shards.count(), shape.options.chunk_elements)) {
    const Sizes shards = Hosts(shape, segment.size(), kBlockElements).shards;
    for (int place = 0; place < count; ++place) {
      const std::size_t h = at(by_leaves[at(place)]);
      const auto host_partials = static_cast<std::int64_t>(maximal_subtrees(shape.layout.leaves, leaves[h]).size());
      for (int l = 0; l < static_cast<int>(hosts.ranks[h].size()); ++l) {
        const int rank = hosts.ranks[h][at(l)];
        const bool owner = l < shards.count();
        const std::int64_t shard = owner ? shards[l] : 0;
        const std::int64_t piece = owner ? shard_range(shard, count, place).size() : 0;
        sent[at(rank)] += partials(shape, rank) * (segment.size() - shard) + host_partials * (shard - piece) +
                          (count - 1) * piece + static_cast<std::int64_t>(hosts.ranks[h].size() - 1) * shard;
      }
    }
  }
  return sent;
}

Sent hierarchical_all_reduce(const CollectiveShape& shape, std::size_t inner, std::size_t outer) {
  Sent sent(at(shape.ranks), 0);
  for (const ElementRange& segment : hierarchical_segments(shape.elements, shape.options.chunk_elements)) {
    add_segment(sent, Hosts(shape, segment.size(), 1), inner, outer);
  }
  return sent;
}

int hierarchical_rounds(const CollectiveShape& shape, std::size_t inner, std::size_t outer) {
  const std::vector<ElementRange> segments = hierarchical_segments(shape.elements, shape.options.chunk_elements);
  const Hosts hosts(shape, segments.front().size(), 1);
  int inside = 0;
  for (const std::vector<int>& host : hosts.ranks) {
    if (host.size() > 1) inside = std::max(inside, inner_rounds(inner, static_cast<int>(host.size())));
  }
  const int count = static_cast<int>(hosts.ranks.size());
  return static_cast<int>(segments.size()) - 1 + 2 * inside + outer_rounds(outer, hosts.shards[0], count);
}

Sent all_but_own_shard(const CollectiveShape& shape) {
  Sent sent;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    sent.push_back(shape.elements - shard_range(shape.elements, shape.ranks, rank).size());
  }
  return sent;
}

Sent halving_reduce_scatter(const CollectiveShape& shape) {
  std::vector<std::int64_t> shards;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    shards.push_back(shard_range(shape.elements, shape.ranks, rank).size());
  }
  return folded_reduce_scatter(Sizes(std::move(shards)));
}

Sent ordered_reduce_scatter(const CollectiveShape& shape) {
  Sent sent = all_but_own_shard(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) sent[at(rank)] *= partials(shape, rank);
  return sent;
}

Sent direct_all_gather(const CollectiveShape& shape) {
  Sent sent;
  for (const std::int64_t part : shape.parts) sent.push_back((shape.ranks - 1) * part);
  return sent;
}

Sent ring_all_gather(const CollectiveShape& shape) {
  const std::vector<int> order = ranks_in_order(shape.ranks, shape.options.order);
  Sent sent(at(shape.ranks));
  const std::int64_t all = Sizes(shape.parts).all();
  for (int p = 0; p < shape.ranks; ++p) {
    sent[at(order[at(p)])] = all - shape.parts[at(order[at(wrap(p + 1, shape.ranks))])];
  }
  return sent;
}

Sent doubling_all_gather(const CollectiveShape& shape) { return folded_all_gather(Sizes(shape.parts)); }

Sent bruck_all_gather(const CollectiveShape& shape) {
  const Sizes parts(shape.parts);
  Sent sent(at(shape.ranks), 0);
  for (int p = 0; p < shape.ranks; ++p) {
    for (int held = 1; held < shape.ranks; held *= 2) {
      sent[at(p)] += parts.run(p, std::min(held, shape.ranks - held));
    }
  }
  return sent;
}

Sent binomial_broadcast(const CollectiveShape& shape) {
  Sent by_number(at(shape.ranks), 0);
  for (int p = 0; p < shape.ranks; ++p) {
    for (int half = 1; half < shape.ranks; half *= 2) {
      if (p < half && p + half < shape.ranks) by_number[at(p)] += shape.elements;
    }
  }
  return from_numbers(shape, by_number);
}

Sent scatter_all_gather_broadcast(const CollectiveShape& shape) {
  const Sizes parts = Sizes::even(shape.elements, shape.ranks);
  Sent by_number(at(shape.ranks), 0);
  for (int p = 0; p < shape.ranks && shape.ranks > 1; ++p) {
    const int next = wrap(p + 1, shape.ranks);
    by_number[at(p)] = parts.sum(p, subtree_end(p, shape.ranks)) - parts[p] + parts.all() -
                       parts.sum(next, subtree_end(next, shape.ranks));
  }
  return from_numbers(shape, by_number);
}

Sent chain_broadcast(const CollectiveShape& shape) {
  std::vector<int> chain = ranks_in_order(shape.ranks, shape.options.order);
  std::rotate(chain.begin(), std::find(chain.begin(), chain.end(), shape.root), chain.end());
  Sent sent(at(shape.ranks), shape.elements);
  sent[at(chain.back())] = 0;
  return sent;
}

Sent binomial_reduce(const CollectiveShape& shape) {
  Sent sent(at(shape.ranks), shape.elements);
  sent[at(shape.root)] = 0;
  return sent;
}

Sent halving_gather_reduce(const CollectiveShape& shape) {
  const Core core(shape.ranks);
  const Sizes parts = Sizes::even(shape.elements, core.size);
  Sent by_number(at(shape.ranks), shape.elements);
  for (int c = 0; c < core.size; ++c) {
    by_number[at(core.position(c))] =
        shape.elements - parts[c] + (c == 0 ? 0 : parts.sum(c, subtree_end(c, core.size)));
  }
  return from_numbers(shape, by_number);
}

Sent ordered_reduce(const CollectiveShape& shape) {
  Sent sent = ordered_reduce_scatter(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (rank != shape.root) sent[at(rank)] += shard_range(shape.elements, shape.ranks, rank).size();
  }
  return sent;
}

Sent direct_gather(const CollectiveShape& shape) {
  Sent sent = shape.parts;
  sent[at(shape.root)] = 0;
  return sent;
}

Sent binomial_gather(const CollectiveShape& shape) {
  const Sizes parts = from_root(shape);
  Sent by_number(at(shape.ranks), 0);
  for (int p = 1; p < shape.ranks; ++p) by_number[at(p)] = parts.sum(p, subtree_end(p, shape.ranks));
  return from_numbers(shape, by_number);
}

Sent direct_scatter(const CollectiveShape& shape) {
  Sent sent(at(shape.ranks), 0);
  sent[at(shape.root)] = Sizes(shape.parts).all() - shape.parts[at(shape.root)];
  return sent;
}

Sent binomial_scatter(const CollectiveShape& shape) {
  const Sizes parts = from_root(shape);
  Sent by_number(at(shape.ranks), 0);
  for (int p = 0; p < shape.ranks; ++p) by_number[at(p)] = parts.sum(p, subtree_end(p, shape.ranks)) - parts[p];
  return from_numbers(shape, by_number);
}

Sent direct_all_to_all(const CollectiveShape& shape) {
  Sent sent;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const std::vector<std::int64_t>& row = shape.counts[at(rank)];
    sent.push_back(std::accumulate(row.begin(), row.end(), std::int64_t{0}) - row[at(rank)]);
  }
  return sent;
}

Sent bruck_all_to_all(const CollectiveShape& shape) {
  std::int64_t blocks = 0;
  for (int j = 1; j < shape.ranks; ++j) blocks += std::popcount(static_cast<unsigned>(j));
  return Sent(at(shape.ranks), blocks * shape.counts[0][0]);
}

Sent nothing(const CollectiveShape& shape) { return Sent(at(shape.ranks), 0); }

int one_round(const CollectiveShape&) { return 1; }
int two_rounds(const CollectiveShape& shape) { return shape.ranks > 1 ? 2 : 1; }
int ordered_rounds(const CollectiveShape& shape) {
  const auto segments = ordered_segments(shape.elements, shape.ranks, shape.options.chunk_elements).size();
  return static_cast<int>(segments) + (shape.ranks > 1 ? 1 : 0);
}
int ring_rounds(const CollectiveShape& shape) { return at_least_one(shape.ranks - 1); }
int two_ring_rounds(const CollectiveShape& shape) { return at_least_one(2 * (shape.ranks - 1)); }
int log_rounds(const CollectiveShape& shape) { return at_least_one(ceil_log2(shape.ranks)); }
int barrier_rounds(const CollectiveShape& shape) { return ceil_log2(shape.ranks); }
int core_rounds(const CollectiveShape& shape) { return core_and_extras(shape.ranks, 1); }
int two_core_rounds(const CollectiveShape& shape) { return core_and_extras(shape.ranks, 2); }
int double_tree_rounds(const CollectiveShape& shape) {
  return double_tree(shape.elements, shape.ranks, shape.options.chunk_elements);
}
int scatter_ring_rounds(const CollectiveShape& shape) { return at_least_one(ceil_log2(shape.ranks) + shape.ranks - 1); }
int chain_rounds(const CollectiveShape& shape) {
  if (shape.ranks == 1) return 1;
  return at_least_one(static_cast<int>(chunks(shape.elements, shape.options.chunk_elements)) + shape.ranks - 2);
}
int core_gather_rounds(const CollectiveShape& shape) {
  const Core core(shape.ranks);
  return at_least_one(2 * core.rounds() + (core.extras > 0 ? 1 : 0));
}
int packed_log_rounds(const CollectiveShape& shape) { return ceil_log2(shape.ranks) + 1; }
int ordered_hierarchical_rounds(const CollectiveShape& shape) {
  const int shards = Hosts(shape, shape.elements, kBlockElements).shards.count();
  const auto segments = ordered_segments(shape.elements, shards, shape.options.chunk_elements).size();
  return static_cast<int>(segments) + (shape.ranks > 1 ? 3 : 0);
}

}  // namespace convoy::spec::cost

// Builds all-reduce schedules over hosts.
#include "convoy/spec/collectives/hierarchical.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/phases/all_reduce_phases.h"

namespace convoy::spec {
namespace {

constexpr std::array<std::string_view, 3> kInner = {"direct", "ring", "halving_doubling"};
constexpr std::array<std::string_view, 5> kOuter = {"direct", "ring", "halving_doubling", "recursive_doubling",
                                                    "double_binary_tree"};
constexpr std::array<AllReducePhase, 5> kOuterPhases = {
    direct_all_reduce_phase, ring_all_reduce_phase, halving_doubling_all_reduce_phase,
    recursive_doubling_all_reduce_phase, double_binary_tree_all_reduce_phase};

std::size_t index_of(std::string_view name, std::span<const std::string_view> names, const char* what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> candidates(names.begin(), names.end());
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no {} algorithm '{}'{}", what, name, did_you_mean(name, candidates)));
}

std::size_t smallest(const std::vector<std::vector<int>>& hosts) {
  std::size_t least = hosts.front().size();
  for (const std::vector<int>& host : hosts) least = std::min(least, host.size());
  return least;
}

// A host's ranks, the first ones with a shard each, the others with nothing.
Team host_team(const std::vector<int>& ranks, const std::vector<ElementRange>& shards) {
  Team team{ranks, shards};
  team.parts.resize(ranks.size(), {shards.back().end, shards.back().end});
  return team;
}

int reduce_inside(ScheduleBuilder& builder, int round, std::string_view inner, const Team& team) {
  const View from = buffer_view(BufferKind::kInput);
  const View sums = buffer_view(BufferKind::kOutput);
  if (inner == "direct") return direct_reduce_scatter(builder, round, team, from, sums, false);
  if (inner == "ring") return ring_reduce_scatter(builder, round, team, from, sums, sums, false);
  return folded_reduce_scatter(builder, round, team, from, sums, sums, false);
}

void gather_inside(ScheduleBuilder& builder, int round, std::string_view inner, const Team& team) {
  const View output = buffer_view(BufferKind::kOutput);
  if (inner == "direct") {
    direct_all_gather(builder, round, team, output, output);
  } else if (inner == "ring") {
    ring_all_gather(builder, round, team, output, output);
  } else {
    folded_all_gather(builder, round, team, output, output);
  }
}

// Inside, between and inside again, for one segment; its first round is `round`.
void add_segment(ScheduleBuilder& builder, int round, const std::vector<std::vector<int>>& hosts,
                 std::string_view inner, AllReducePhase outer, ElementRange segment) {
  const std::vector<ElementRange> shards = even_team(std::vector<int>(smallest(hosts), 0), segment).parts;
  int between = round;
  std::vector<bool> alone(static_cast<std::size_t>(builder.ranks()), false);
  for (const std::vector<int>& host : hosts) {
    if (host.size() > 1) between = std::max(between, reduce_inside(builder, round, inner, host_team(host, shards)));
    alone[static_cast<std::size_t>(host[0])] = host.size() == 1;
  }
  // A rank alone on its host has summed nothing yet.
  const View from = [&alone](int rank, ElementRange range) {
    const bool untouched = alone[static_cast<std::size_t>(rank)];
    return Chunk{untouched ? BufferKind::kInput : BufferKind::kOutput, 0, range.begin, range.size()};
  };
  int after = between;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    std::vector<int> owners;
    for (const std::vector<int>& host : hosts) owners.push_back(host[s]);
    after = std::max(after, outer(builder, between, owners, shards[s], from, buffer_view(BufferKind::kOutput), 0));
  }
  for (const std::vector<int>& host : hosts) {
    if (host.size() > 1) gather_inside(builder, after, inner, host_team(host, shards));
  }
}

// A host in an ordered exchange.
struct OrderedHost {
  std::vector<int> ranks;
  // Its replicas, and the subtrees that its host partials are the sums of.
  ReplicaRange leaves;
  std::vector<ReplicaRange> subtrees;
};

std::vector<OrderedHost> hosts_of(const OrderedLayout& layout, const HostOfRank& host_of_rank) {
  std::vector<OrderedHost> hosts;
  for (const std::vector<int>& ranks : ranks_by_host(static_cast<int>(layout.owners.size()), host_of_rank)) {
    OrderedHost host;
    host.ranks = ranks;
    for (const int rank : ranks) {
      const ReplicaRange own = layout.owners[static_cast<std::size_t>(rank)];
      if (own.size() == 0) continue;
      const bool first = host.leaves.size() == 0;
      if (!first && own.begin != host.leaves.end) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the replicas of rank {} do not follow those before it on its host", rank));
      }
      host.leaves = {first ? own.begin : host.leaves.begin, own.end};
    }
    host.subtrees = maximal_subtrees(layout.leaves, host.leaves);
    hosts.push_back(std::move(host));
  }
  // From left to right in the tree; within the exchange only this order counts.
  std::stable_sort(hosts.begin(), hosts.end(),
                   [](const OrderedHost& a, const OrderedHost& b) { return a.leaves.begin < b.leaves.begin; });
  return hosts;
}

// Sums one shard's partials to host partials at its owner. Returns where each host partial lies, as the chunk of the
// whole shard: in the owner's work memory, of which `work` elements are taken, or in its input where nothing had to be
// added.
std::vector<Chunk> sum_in_host(ScheduleBuilder& builder, int round, const OrderedLayout& layout,
                               const OrderedHost& host, std::size_t owner_index, ElementRange shard,
                               std::int64_t& work) {
  const int owner = host.ranks[owner_index];
  std::vector<Chunk> partials;
  for (const ReplicaRange& tree : host.subtrees) {
    std::vector<Chunk> summands;
    std::vector<ReplicaRange> parts;
    for (const int rank : host.ranks) {
      const auto own = maximal_subtrees(layout.leaves, layout.owners[static_cast<std::size_t>(rank)]);
      for (std::size_t k = 0; k < own.size(); ++k) {
        if (own[k].begin < tree.begin || own[k].end > tree.end) continue;
        const Chunk sent{BufferKind::kInput, static_cast<int>(k), shard.begin, shard.size()};
        summands.push_back(rank == owner ? sent : builder.take(round, rank, sent, owner));
        parts.push_back({own[k].begin - tree.begin, own[k].end - tree.begin});
      }
    }
    if (summands.size() == 1 && summands[0].kind == BufferKind::kInput) {
      partials.push_back(summands[0]);
      continue;
    }
    partials.push_back({BufferKind::kWork, 0, work, shard.size()});
    work += shard.size();
    builder.need_work(owner, work);
    const std::vector<int> program = tree_program(tree.size(), parts);
    builder.reduce(round, owner, partials.back(), std::move(summands), program, false);
  }
  return partials;
}

// Each host's owner of a shard gives it to the others of its host.
void spread_inside(ScheduleBuilder& builder, int round, const std::vector<OrderedHost>& hosts, std::size_t owner_index,
                   ElementRange shard) {
  const View output = buffer_view(BufferKind::kOutput);
  for (const OrderedHost& host : hosts) {
    const int owner = host.ranks[owner_index];
    const int size = static_cast<int>(host.ranks.size());
    for (int step = 1; step < size; ++step) {
      const int to = host.ranks[static_cast<std::size_t>(wrap(static_cast<int>(owner_index) + step, size))];
      builder.transfer(round, owner, output(owner, shard), to, output(to, shard));
    }
  }
}

// Part of a chunk that holds `whole`.
Chunk part_of(const Chunk& chunk, ElementRange whole, ElementRange part) {
  return {chunk.kind, chunk.index, chunk.offset + part.begin - whole.begin, part.size()};
}

// The owners of a shard sum a piece of it each, and spread it. `partials` are by host.
void exchange_between(ScheduleBuilder& builder, int round, const std::vector<int>& owners, ElementRange shard,
                      const std::vector<std::vector<Chunk>>& partials, const std::vector<int>& program) {
  const int hosts = static_cast<int>(owners.size());
  const View output = buffer_view(BufferKind::kOutput);
  const auto piece = [&](int host) {
    const ElementRange within = shard_range(shard.size(), hosts, host);
    return ElementRange{shard.begin + within.begin, shard.begin + within.end};
  };
  for (int host = 0; host < hosts; ++host) {
    const int owner = owners[static_cast<std::size_t>(host)];
    std::vector<Chunk> summands;
    for (int from = 0; from < hosts; ++from) {
      const int sender = owners[static_cast<std::size_t>(from)];
      for (const Chunk& partial : partials[static_cast<std::size_t>(from)]) {
        const Chunk sent = part_of(partial, shard, piece(host));
        summands.push_back(from == host ? sent : builder.take(round, sender, sent, owner));
      }
    }
    builder.reduce(round, owner, output(owner, piece(host)), std::move(summands), program, true);
    for (int step = 1; step < hosts; ++step) {
      const int taker = owners[static_cast<std::size_t>(wrap(host + step, hosts))];
      builder.transfer(round + 1, owner, output(owner, piece(host)), taker, output(taker, piece(host)));
    }
  }
}

}  // namespace

std::span<const std::string_view> inner_algorithms() { return kInner; }

std::span<const std::string_view> outer_algorithms() { return kOuter; }

std::vector<ElementRange> hierarchical_segments(std::int64_t elements, std::int64_t chunk_elements) {
  if (chunk_elements <= 0) return {{0, elements}};
  std::vector<ElementRange> segments;
  for (std::int64_t begin = 0; begin < elements || begin == 0; begin += chunk_elements) {
    segments.push_back({begin, std::min(elements, begin + chunk_elements)});
  }
  return segments;
}

Schedule hierarchical_all_reduce(int ranks, std::int64_t elements, const HostOfRank& host_of_rank,
                                 const HierarchicalOptions& options) {
  index_of(options.inner, kInner, "inner");
  const AllReducePhase outer = kOuterPhases[index_of(options.outer, kOuter, "outer")];
  ScheduleBuilder builder("all_reduce", fmt::format("hierarchical:{}+{}", options.inner, options.outer), ranks,
                          elements);
  builder.sizes().contributions = ranks;
  const std::vector<std::vector<int>> hosts = ranks_by_host(ranks, host_of_rank);
  int round = 0;
  for (const ElementRange& segment : hierarchical_segments(elements, options.chunk_elements)) {
    add_segment(builder, round, hosts, options.inner, outer, segment);
    ++round;
  }
  return builder.finish();
}

Schedule ordered_hierarchical_all_reduce(const OrderedLayout& layout, const HostOfRank& host_of_rank,
                                         std::int64_t elements, std::int64_t chunk_elements) {
  const int ranks = static_cast<int>(layout.owners.size());
  ScheduleBuilder builder("all_reduce", "ordered_hierarchical", ranks, elements);
  builder.sizes().contributions = layout.leaves;
  for (std::size_t r = 0; r < layout.owners.size(); ++r) {
    const int inputs = static_cast<int>(maximal_subtrees(layout.leaves, layout.owners[r]).size());
    builder.sizes().inputs[r] = inputs;
    if (inputs == 0) builder.sizes().input_elements[r] = 0;
  }
  const std::vector<OrderedHost> hosts = hosts_of(layout, host_of_rank);
  std::vector<ReplicaRange> subtrees;
  std::size_t shards = hosts.front().ranks.size();
  for (const OrderedHost& host : hosts) {
    subtrees.insert(subtrees.end(), host.subtrees.begin(), host.subtrees.end());
    shards = std::min(shards, host.ranks.size());
  }
  const std::vector<int> program = tree_program(layout.leaves, subtrees);
  std::vector<std::int64_t> work(layout.owners.size(), 0);
  int round = 0;
  for (const ElementRange& segment : ordered_segments(elements, static_cast<int>(shards), chunk_elements)) {
    for (std::size_t s = 0; s < shards; ++s) {
      const ElementRange within = shard_range(segment.size(), static_cast<int>(shards), static_cast<int>(s));
      const ElementRange shard{segment.begin + within.begin, segment.begin + within.end};
      std::vector<int> owners;
      std::vector<std::vector<Chunk>> partials;
      for (const OrderedHost& host : hosts) {
        owners.push_back(host.ranks[s]);
        std::int64_t& taken = work[static_cast<std::size_t>(host.ranks[s])];
        partials.push_back(sum_in_host(builder, round, layout, host, s, shard, taken));
      }
      exchange_between(builder, round + 1, owners, shard, partials, program);
      spread_inside(builder, round + 3, hosts, s, shard);
    }
    ++round;
  }
  return builder.finish();
}

}  // namespace convoy::spec

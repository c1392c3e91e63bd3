// All-reduce over several hosts: inside each host, between the hosts, and inside again, so that each element crosses
// between hosts as rarely as it can.
//
// Words: H is the number of hosts. *Segments* cut the buffer into stretches that follow each other through the rounds, so
// that one moves inside the hosts while another one moves between them. *Shards* cut a segment into as many parts as the smallest host has
// ranks; shard s belongs to the s-th rank of each host, its *owners*. A *host partial* is the sum of a maximal subtree of the replicas
// that a host carries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/spec/blocks.h"
#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/topology.h"

namespace convoy::spec {

/// Which algorithms a hierarchical all-reduce is put together from, and how.
struct HierarchicalOptions {
  /// Inside a host, a reduce-scatter before and an all-gather after: "direct", "ring" or "halving_doubling".
  std::string inner = "direct";
  /// Between the owners of a shard: "direct", "ring", "halving_doubling", "recursive_doubling" or "double_binary_tree".
  std::string outer = "ring";
  /// The elements of a segment; 0 means that there is one.
  std::int64_t chunk_elements = 0;
};

/// Returns the names that HierarchicalOptions::inner takes.
std::span<const std::string_view> inner_algorithms();

/// Returns the names that HierarchicalOptions::outer takes.
std::span<const std::string_view> outer_algorithms();

/// Returns the segments of a hierarchical all-reduce.
std::vector<ElementRange> hierarchical_segments(std::int64_t elements, std::int64_t chunk_elements);

/// All-reduce as reduce-scatter inside each host, all-reduce of each shard between its owners, all-gather inside. Hosts
/// may have different numbers of ranks.
/// Cost:       the inner reduce-scatter of n into the shards, the outer all-reduce of a shard, the inner all-gather:
///             a host sends to others what the outer algorithm sends for n in all, for a ring 2n(H-1)/H. S segments
///             take S - 1 rounds more than one
/// Errors:     kInvalidArgument for an unknown algorithm, naming the nearest
Schedule hierarchical_all_reduce(int ranks, std::int64_t elements, const HostOfRank& hosts,
                                 const HierarchicalOptions& options = {});

/// All-reduce along the canonical tree over replicas: shards are reduced to host partials inside each host; the owners
/// of a shard exchange those and reduce a piece of the shard each; pieces, then shards, are spread. The bits depend on
/// neither ranks nor hosts. Segments are about `chunk_elements` long, whole blocks (ordered_segments); 0 means that there
/// is one.
/// Cost:       S + 3 rounds of messages for S segments, and of each: a rank with k partials sends k times the shards of others on its host; an owner of
///             a host with p partials sends p times its shard less its piece, its piece to H-1 owners, and its shard to
///             the others of its host: between hosts 2n(H-1)/H a host with one partial each
/// Errors:     kInvalidArgument when the replicas of a host do not follow each other
Schedule ordered_hierarchical_all_reduce(const OrderedLayout& layout, const HostOfRank& hosts, std::int64_t elements,
                                         std::int64_t chunk_elements = 0);

}  // namespace convoy::spec

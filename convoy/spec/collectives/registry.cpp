// The table of algorithms. A row is an algorithm; its cost is in cost.cpp.
#include "convoy/spec/collectives/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/cost.h"
#include "convoy/spec/collectives/hierarchical.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/reduce_scatter.h"
#include "convoy/spec/collectives/rooted.h"

namespace convoy::spec {
namespace {

using Shape = CollectiveShape;

bool has_equal_blocks(const Shape& shape) {
  for (const std::vector<std::int64_t>& row : shape.counts) {
    for (const std::int64_t count : row) {
      if (count != shape.counts[0][0]) return false;
    }
  }
  return true;
}

bool hosts_have_neighbouring_replicas(const Shape& shape) {
  for (const std::vector<int>& host : ranks_by_host(shape.ranks, shape.hosts)) {
    int end = -1;
    for (const int rank : host) {
      const ReplicaRange own = shape.layout.owners[static_cast<std::size_t>(rank)];
      if (own.size() == 0) continue;
      if (end >= 0 && own.begin != end) return false;
      end = own.end;
    }
  }
  return true;
}

// What a row says of its algorithm.
struct Traits {
  bool ordered = false;
  bool pipelined = false;
  bool takes_order = false;
};

Algorithm row(std::string_view collective, std::string_view name, Traits traits, Schedule (*build)(const Shape&),
              std::vector<std::int64_t> (*sent)(const Shape&), int (*rounds)(const Shape&)) {
  Algorithm made;
  made.collective = collective;
  made.name = name;
  made.ordered = traits.ordered;
  made.pipelined = traits.pipelined;
  made.takes_order = traits.takes_order;
  made.build = build;
  made.sent = sent;
  made.rounds = rounds;
  return made;
}

Algorithm with_need(Algorithm row, std::string_view needs, bool (*fits)(const Shape&)) {
  row.needs = needs;
  row.fits = fits;
  return row;
}

Algorithm hierarchical(std::size_t inner, std::size_t outer) {
  const std::string inner_name(inner_algorithms()[inner]);
  const std::string outer_name(outer_algorithms()[outer]);
  Algorithm row;
  row.collective = "all_reduce";
  row.name = fmt::format("hierarchical:{}+{}", inner_name, outer_name);
  row.pipelined = true;
  row.build = [inner_name, outer_name](const Shape& s) {
    const HierarchicalOptions options{inner_name, outer_name, s.options.chunk_elements};
    return hierarchical_all_reduce(s.ranks, s.elements, s.hosts, options);
  };
  row.sent = [inner, outer](const Shape& s) { return cost::hierarchical_all_reduce(s, inner, outer); };
  row.rounds = [inner, outer](const Shape& s) { return cost::hierarchical_rounds(s, inner, outer); };
  return row;
}

void add_all_reduce(std::vector<Algorithm>& rows) {
  const std::string_view name = "all_reduce";
  rows.push_back(row(
      name, "ordered_exchange", {.ordered = true, .pipelined = true},
      [](const Shape& s) { return ordered_all_reduce(s.layout, s.elements, s.options.chunk_elements); },
      cost::ordered_all_reduce, cost::ordered_rounds));
  rows.push_back(row(
      name, "ordered_direct", {.ordered = true},
      [](const Shape& s) { return ordered_direct_all_reduce(s.layout, s.elements); }, cost::ordered_direct_all_reduce,
      cost::one_round));
  rows.push_back(with_need(row(
                               name, "ordered_hierarchical", {.ordered = true, .pipelined = true},
                               [](const Shape& s) {
                                 return ordered_hierarchical_all_reduce(s.layout, s.hosts, s.elements,
                                                                        s.options.chunk_elements);
                               },
                               cost::ordered_hierarchical_all_reduce, cost::ordered_hierarchical_rounds),
                           "the replicas of each host to follow each other", hosts_have_neighbouring_replicas));
  rows.push_back(row(
      name, "ring", {.takes_order = true},
      [](const Shape& s) { return ring_all_reduce(s.ranks, s.elements, s.options); }, cost::ring_all_reduce,
      cost::two_ring_rounds));
  rows.push_back(row(
      name, "halving_doubling", {.takes_order = true},
      [](const Shape& s) { return halving_doubling_all_reduce(s.ranks, s.elements, s.options); },
      cost::halving_doubling_all_reduce, cost::two_core_rounds));
  rows.push_back(row(
      name, "recursive_doubling", {.takes_order = true},
      [](const Shape& s) { return recursive_doubling_all_reduce(s.ranks, s.elements, s.options); },
      cost::recursive_doubling_all_reduce, cost::core_rounds));
  rows.push_back(row(
      name, "double_binary_tree", {.pipelined = true, .takes_order = true},
      [](const Shape& s) { return double_binary_tree_all_reduce(s.ranks, s.elements, s.options); },
      cost::double_binary_tree_all_reduce, cost::double_tree_rounds));
  rows.push_back(row(
      name, "direct", {.takes_order = true},
      [](const Shape& s) { return direct_all_reduce(s.ranks, s.elements, s.options); }, cost::direct_all_reduce,
      cost::one_round));
  for (std::size_t inner = 0; inner < inner_algorithms().size(); ++inner) {
    for (std::size_t outer = 0; outer < outer_algorithms().size(); ++outer) rows.push_back(hierarchical(inner, outer));
  }
}

void add_reduce_scatter(std::vector<Algorithm>& rows) {
  const std::string_view name = "reduce_scatter";
  rows.push_back(row(
      name, "ordered_exchange", {.ordered = true},
      [](const Shape& s) { return ordered_reduce_scatter(s.layout, s.elements); }, cost::ordered_reduce_scatter,
      cost::one_round));
  rows.push_back(row(
      name, "ring", {.takes_order = true},
      [](const Shape& s) { return ring_reduce_scatter(s.ranks, s.elements, s.options); }, cost::all_but_own_shard,
      cost::ring_rounds));
  rows.push_back(row(
      name, "halving", {}, [](const Shape& s) { return halving_reduce_scatter(s.ranks, s.elements); },
      cost::halving_reduce_scatter, cost::core_rounds));
  rows.push_back(row(
      name, "pairwise", {.takes_order = true},
      [](const Shape& s) { return pairwise_reduce_scatter(s.ranks, s.elements, s.options); }, cost::all_but_own_shard,
      cost::ring_rounds));
}

void add_all_gather(std::vector<Algorithm>& rows) {
  const std::string_view name = "all_gather";
  rows.push_back(row(
      name, "direct", {.ordered = true, .takes_order = true},
      [](const Shape& s) { return direct_all_gather(s.parts, s.options); }, cost::direct_all_gather, cost::one_round));
  rows.push_back(row(
      name, "ring", {.ordered = true, .takes_order = true},
      [](const Shape& s) { return ring_all_gather(s.parts, s.options); }, cost::ring_all_gather, cost::ring_rounds));
  rows.push_back(row(
      name, "doubling", {.ordered = true}, [](const Shape& s) { return doubling_all_gather(s.parts); },
      cost::doubling_all_gather, cost::core_rounds));
  rows.push_back(row(
      name, "bruck", {.ordered = true}, [](const Shape& s) { return bruck_all_gather(s.parts); },
      cost::bruck_all_gather, cost::log_rounds));
}

void add_rooted(std::vector<Algorithm>& rows) {
  rows.push_back(row(
      "broadcast", "binomial", {.ordered = true},
      [](const Shape& s) { return binomial_broadcast(s.ranks, s.root, s.elements); }, cost::binomial_broadcast,
      cost::log_rounds));
  rows.push_back(row(
      "broadcast", "scatter_all_gather", {.ordered = true},
      [](const Shape& s) { return scatter_all_gather_broadcast(s.ranks, s.root, s.elements); },
      cost::scatter_all_gather_broadcast, cost::scatter_ring_rounds));
  rows.push_back(row(
      "broadcast", "chain", {.ordered = true, .pipelined = true, .takes_order = true},
      [](const Shape& s) { return chain_broadcast(s.ranks, s.root, s.elements, s.options); }, cost::chain_broadcast,
      cost::chain_rounds));
  rows.push_back(row(
      "reduce", "ordered_exchange", {.ordered = true},
      [](const Shape& s) { return ordered_reduce(s.layout, s.root, s.elements); }, cost::ordered_reduce,
      cost::two_rounds));
  rows.push_back(row(
      "reduce", "binomial", {}, [](const Shape& s) { return binomial_reduce(s.ranks, s.root, s.elements); },
      cost::binomial_reduce, cost::log_rounds));
  rows.push_back(row(
      "reduce", "halving_gather", {}, [](const Shape& s) { return halving_gather_reduce(s.ranks, s.root, s.elements); },
      cost::halving_gather_reduce, cost::core_gather_rounds));
  rows.push_back(row(
      "gather", "direct", {.ordered = true}, [](const Shape& s) { return direct_gather(s.root, s.parts); },
      cost::direct_gather, cost::one_round));
  rows.push_back(row(
      "gather", "binomial", {.ordered = true}, [](const Shape& s) { return binomial_gather(s.root, s.parts); },
      cost::binomial_gather, cost::log_rounds));
  rows.push_back(row(
      "scatter", "direct", {.ordered = true}, [](const Shape& s) { return direct_scatter(s.root, s.parts); },
      cost::direct_scatter, cost::one_round));
  rows.push_back(row(
      "scatter", "binomial", {.ordered = true}, [](const Shape& s) { return binomial_scatter(s.root, s.parts); },
      cost::binomial_scatter, cost::log_rounds));
}

void add_others(std::vector<Algorithm>& rows) {
  rows.push_back(row(
      "all_to_all", "direct", {.ordered = true}, [](const Shape& s) { return direct_all_to_all(s.counts); },
      cost::direct_all_to_all, cost::one_round));
  rows.push_back(row(
      "all_to_all", "pairwise", {.ordered = true}, [](const Shape& s) { return pairwise_all_to_all(s.counts); },
      cost::direct_all_to_all, cost::ring_rounds));
  rows.push_back(with_need(row(
                               "all_to_all", "bruck", {.ordered = true},
                               [](const Shape& s) { return bruck_all_to_all(s.ranks, s.counts[0][0]); },
                               cost::bruck_all_to_all, cost::packed_log_rounds),
                           "blocks of one size", has_equal_blocks));
  rows.push_back(row(
      "barrier", "dissemination", {.ordered = true}, [](const Shape& s) { return dissemination_barrier(s.ranks); },
      cost::nothing, cost::barrier_rounds));
}

std::vector<Algorithm> make_rows() {
  std::vector<Algorithm> rows;
  add_all_reduce(rows);
  add_reduce_scatter(rows);
  add_all_gather(rows);
  add_rooted(rows);
  add_others(rows);
  return rows;
}

void check_count(const char* what, std::size_t found, int ranks) {
  if (found == static_cast<std::size_t>(ranks)) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} of {} ranks where there are {}", what, found, ranks));
}

}  // namespace

CollectiveShape with_defaults(CollectiveShape shape) {
  if (shape.ranks < 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} ranks", shape.ranks));
  if (shape.elements < 0) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} elements", shape.elements));
  }
  if (shape.root < 0 || shape.root >= shape.ranks) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} cannot be the root of {} ranks", shape.root, shape.ranks));
  }
  std::vector<std::int64_t> even;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    even.push_back(shard_range(shape.elements, shape.ranks, rank, 1).size());
  }
  if (shape.parts.empty()) shape.parts = even;
  if (shape.counts.empty()) shape.counts.assign(static_cast<std::size_t>(shape.ranks), even);
  if (shape.layout.owners.empty()) shape.layout = one_leaf_each(shape.ranks);
  check_count("parts", shape.parts.size(), shape.ranks);
  check_count("counts", shape.counts.size(), shape.ranks);
  check_count("replicas", shape.layout.owners.size(), shape.ranks);
  return shape;
}

std::span<const Algorithm> algorithms() {
  static const std::vector<Algorithm> rows = make_rows();
  return rows;
}

std::vector<std::string> collectives() {
  std::vector<std::string> names;
  for (const Algorithm& row : algorithms()) {
    if (names.empty() || names.back() != row.collective) names.emplace_back(row.collective);
  }
  return names;
}

const Algorithm& find_algorithm(std::string_view collective, std::string_view algorithm) {
  std::vector<std::string> names;
  for (const Algorithm& row : algorithms()) {
    if (row.collective != collective) continue;
    if (row.name == algorithm) return row;
    names.emplace_back(row.name);
  }
  if (names.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no collective '{}'{}", collective, did_you_mean(collective, collectives())));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no algorithm '{}' for {}{}", algorithm, collective, did_you_mean(algorithm, names)));
}

bool fits(const Algorithm& algorithm, const CollectiveShape& shape) {
  return !algorithm.fits || algorithm.fits(with_defaults(shape));
}

Schedule build(std::string_view collective, std::string_view algorithm, const CollectiveShape& shape) {
  const Algorithm& row = find_algorithm(collective, algorithm);
  const CollectiveShape full = with_defaults(shape);
  if (row.fits && !row.fits(full)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} of {} needs {}", algorithm, collective, row.needs));
  }
  return row.build(full);
}

}  // namespace convoy::spec

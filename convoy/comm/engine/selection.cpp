// Chooses: what the options name, else by price, else by the built-in rules.
#include "convoy/comm/engine/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/text.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/spec/collectives/ordered.h"

namespace convoy::comm {
namespace {

// A rank reads and writes two shards of a segment at a time: they shall stay in its cache.
constexpr std::int64_t kShardBytes = std::int64_t{1} << 19;
// What pipelined algorithms cut, where a rank has no shard of its own in each chunk.
constexpr std::int64_t kChunkBytes = std::int64_t{1} << 18;
// Over several hosts: from here on fewer bytes between hosts outweigh two more rounds.
constexpr std::int64_t kHierarchicalBytes = std::int64_t{1} << 16;
// A table holds for all sizes; layouts and roots come and go.
constexpr std::size_t kRemembered = 16;

std::int64_t bytes_of(const spec::CollectiveShape& shape, DType dtype) {
  return shape.elements * static_cast<std::int64_t>(element_bytes(dtype));
}

// The chunk of an algorithm that nobody has priced.
std::int64_t usual_chunk(const spec::Algorithm& algorithm, int ranks, DType dtype) {
  if (!algorithm.pipelined) return 0;
  const bool sharded = algorithm.name == "ordered_exchange" || algorithm.name == "ordered_hierarchical";
  return (sharded ? ranks * kShardBytes : kChunkBytes) / static_cast<std::int64_t>(element_bytes(dtype));
}

// A rank that does not carry exactly one replica, with which only ordered algorithms can sum (they alone know of
// replicas); -1 when there is none.
int rank_without_one_replica(const spec::OrderedLayout& layout) {
  for (std::size_t rank = 0; rank < layout.owners.size(); ++rank) {
    if (layout.owners[rank].size() != 1) return static_cast<int>(rank);
  }
  return -1;
}

std::string ordered_names() {
  std::string names;
  for (const spec::Algorithm& algorithm : spec::algorithms()) {
    if (algorithm.collective != "all_reduce" || !algorithm.ordered) continue;
    names += (names.empty() ? "" : ", ") + algorithm.name;
  }
  return names;
}

SelectionOptions checked(SelectionOptions options, int ranks) {
  check_selection(options, ranks);
  return options;
}

std::string key_of(const std::string& collective, const spec::CollectiveShape& shape, DType dtype) {
  std::string key = fmt::format("{} {} {} {}", collective, element_bytes(dtype), shape.root, shape.layout.leaves);
  for (const spec::ReplicaRange& range : shape.layout.owners) key += fmt::format(" {}-{}", range.begin, range.end);
  return key;
}

}  // namespace

law::SelectionTable selection_table(const std::string& collective, const spec::CollectiveShape& shape,
                                    const law::Machine& machine, std::int64_t element_bytes, bool reproducible) {
  const bool sums = collective == "all_reduce";
  law::SelectOptions options;
  options.element_bytes = element_bytes;
  options.reproducible = reproducible;
  options.chunk_bytes = {(sums ? shape.ranks : 1) * kShardBytes / 8, (sums ? shape.ranks : 1) * kShardBytes};
  return law::make_selection_table(collective, shape, machine, {1 << 10, 16 << 10, 256 << 10, 4 << 20, 32 << 20},
                                   options);
}

void check_selection(const SelectionOptions& options, int ranks) {
  if (!options.hosts.empty() && options.hosts.size() != static_cast<std::size_t>(ranks)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("hosts of {} ranks are named, there are {}", options.hosts.size(), ranks));
  }
  if (options.algorithm == kAutoAlgorithm) return;
  if (spec::find_algorithm("all_reduce", options.algorithm).ordered || !options.reproducible) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("the sums of all_reduce '{}' depend on the number of ranks, and results are to be the same on "
                  "any: take one of {}, or switch replicas off",
                  options.algorithm, ordered_names()));
}

Selection::Selection(int ranks, bool shares_memory, SelectionOptions options)
    : ranks_(ranks),
      options_(checked(std::move(options), ranks)),
      hosts_(static_cast<int>(spec::ranks_by_host(ranks, options_.hosts).size())),
      priced_(options_.machine.has_value() && ranks > 1 && ranks <= kMostPricedRanks &&
              (hosts_ > 1 || !shares_memory)) {}

law::Choice Selection::choose(const std::string& collective, const spec::CollectiveShape& shape, DType dtype,
                              ReduceOp reduce) {
  if (collective == "all_reduce" && options_.algorithm != kAutoAlgorithm) return overridden(shape, dtype);
  // What the model prices as a sum on the way would have to be rounded there.
  const bool sums = collective == "all_reduce" || collective == "reduce_scatter" || collective == "reduce";
  if (!priced_ || (sums && rounds_between_reductions(dtype, reduce))) return built_in(collective, shape, dtype, reduce);
  return table(collective, shape, dtype).choose(bytes_of(shape, dtype));
}

spec::Schedule Selection::build(const std::string& collective, spec::CollectiveShape shape, DType dtype,
                                ReduceOp reduce) {
  const law::Choice choice = choose(collective, shape, dtype, reduce);
  shape.hosts = options_.hosts;
  shape.options.chunk_elements = choice.chunk_elements;
  shape.options.order = choice.by_host ? spec::host_major_order(ranks_, options_.hosts) : std::vector<int>();
  return spec::build(collective, choice.algorithm, shape);
}

law::Choice Selection::overridden(const spec::CollectiveShape& shape, DType dtype) const {
  const spec::Algorithm& algorithm = spec::find_algorithm("all_reduce", options_.algorithm);
  spec::CollectiveShape placed = shape;
  placed.hosts = options_.hosts;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("all_reduce '{}', which was asked for, {}", options_.algorithm, why));
  };
  if (!spec::fits(algorithm, placed)) refuse(fmt::format("needs {}", algorithm.needs));
  const int rank = rank_without_one_replica(shape.layout);
  if (!algorithm.ordered && rank >= 0) {
    refuse(fmt::format("takes one replica of each rank, and rank {} carries {}", rank,
                       shape.layout.owners[static_cast<std::size_t>(rank)].size()));
  }
  return {algorithm.name, usual_chunk(algorithm, ranks_, dtype), false, 0};
}

law::Choice Selection::built_in(const std::string& collective, const spec::CollectiveShape& shape, DType dtype,
                                ReduceOp reduce) const {
  if (collective == "all_gather") return {"direct", 0, false, 0};
  if (collective == "broadcast") return {"binomial", 0, false, 0};
  if (collective != "all_reduce") return {"ordered_exchange", 0, false, 0};
  const spec::Algorithm& hierarchical = spec::find_algorithm(collective, "ordered_hierarchical");
  spec::CollectiveShape placed = shape;
  placed.hosts = options_.hosts;
  const bool hosts_share = hosts_ > 1 && hosts_ < ranks_;
  if (hosts_share && bytes_of(shape, dtype) >= kHierarchicalBytes && !rounds_between_reductions(dtype, reduce) &&
      spec::fits(hierarchical, placed)) {
    return {hierarchical.name, usual_chunk(hierarchical, ranks_, dtype), false, 0};
  }
  const spec::Algorithm& exchange = spec::find_algorithm(collective, "ordered_exchange");
  return {exchange.name, usual_chunk(exchange, ranks_, dtype), false, 0};
}

const law::SelectionTable& Selection::table(const std::string& collective, const spec::CollectiveShape& shape,
                                            DType dtype) {
  const std::string key = key_of(collective, shape, dtype);
  for (const auto& [known, table] : tables_) {
    if (known == key) return table;
  }
  if (tables_.size() == kRemembered) tables_.erase(tables_.begin());
  spec::CollectiveShape asked;
  asked.ranks = ranks_;
  asked.root = shape.root;
  asked.layout = shape.layout;
  asked.hosts = options_.hosts;
  law::Machine machine = *options_.machine;
  machine.host_of_rank = options_.hosts;
  const bool reproducible = options_.reproducible || rank_without_one_replica(shape.layout) >= 0;
  tables_.emplace_back(
      key, selection_table(collective, asked, machine, static_cast<std::int64_t>(element_bytes(dtype)), reproducible));
  return tables_.back().second;
}

}  // namespace convoy::comm

// All algorithms by name, so that a schedule can be asked for in words: by a recipe, a benchmark or the planner.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/spec/collectives/all_to_all.h"
#include "convoy/spec/schedule/options.h"
#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/topology.h"

namespace convoy::spec {

/// Everything that a collective's schedule depends on. What an algorithm does not ask for is not looked at.
struct CollectiveShape {
  /// How many ranks.
  int ranks = 1;
  /// Elements of the operation, as Schedule::elements; all-to-all: what each rank brings.
  std::int64_t elements = 0;
  /// The root, where there is one.
  int root = 0;
  /// All-gather, gather, scatter: each rank's part; empty means as even as `elements` divides.
  std::vector<std::int64_t> parts;
  /// All-to-all: the blocks; empty means that each rank deals `elements` as evenly as they divide.
  BlockCounts counts;
  /// Ordered algorithms: who carries which replicas; without owners each rank carries one.
  OrderedLayout layout;
  /// Hierarchical algorithms: the host of each rank; empty means one host.
  HostOfRank hosts;
  /// Chunks and order of ranks.
  CollectiveOptions options;
};

/// Returns the shape with its defaults filled in.
/// Errors:     kInvalidArgument when sizes are for another number of ranks
CollectiveShape with_defaults(CollectiveShape shape);

/// One algorithm for one collective.
struct Algorithm {
  /// The operation: "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
  /// "all_to_all" or "barrier".
  std::string_view collective;
  /// The algorithm, as Schedule::algorithm.
  std::string name;
  /// Whether the bits of the result do not depend on who carries which replica. True also where nothing is summed.
  bool ordered = false;
  /// Whether options.chunk_elements cuts its messages.
  bool pipelined = false;
  /// Whether options.order lays its ranks out.
  bool takes_order = false;
  /// What it needs beyond sizes, for people; empty when any shape will do.
  std::string_view needs;
  /// Returns whether a shape (with defaults) has what it needs; none when any has.
  std::function<bool(const CollectiveShape& shape)> fits;
  /// Returns the schedule of a shape with defaults.
  std::function<Schedule(const CollectiveShape& shape)> build;
  /// Returns the elements that each rank sends, in closed form: the Cost line of the builder.
  std::function<std::vector<std::int64_t>(const CollectiveShape& shape)> sent;
  /// Returns the rounds of messages in closed form; with too few elements for all messages there may be fewer.
  std::function<int(const CollectiveShape& shape)> rounds;
};

/// Returns all algorithms, those of a collective together, in the order of the documentation.
std::span<const Algorithm> algorithms();

/// Returns the collectives that have algorithms.
std::vector<std::string> collectives();

/// Returns an algorithm.
/// Errors:     kInvalidArgument naming the nearest collective or algorithm
const Algorithm& find_algorithm(std::string_view collective, std::string_view algorithm);

/// Returns whether an algorithm can be built for a shape.
bool fits(const Algorithm& algorithm, const CollectiveShape& shape);

/// Returns the schedule of an algorithm by name.
/// Errors:     kInvalidArgument naming the nearest collective or algorithm, or what the algorithm needs
Schedule build(std::string_view collective, std::string_view algorithm, const CollectiveShape& shape);

}  // namespace convoy::spec

// One training step told in order: who carries what, what is exchanged, who waits for whom. From the recipe alone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/spec/recipe.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// What one rank carries in a step with a whole global batch.
struct RankShare {
  /// Its replicas.
  ReplicaRange replicas;
  /// Its samples.
  std::int64_t samples = 0;
  /// The largest and the smallest micro-batch of its replicas.
  std::int64_t most_in_micro_batch = 0, least_in_micro_batch = 0;
  /// How many partial sums of gradients it brings to an exchange.
  int partials = 0;
  /// About how many bytes of gradients it sends; 0 when the number of parameters is not known.
  std::int64_t sent_bytes = 0;
};

/// How a recipe's work is divided over ranks.
struct WorkDivision {
  /// How many replicas there are: the recipe's, or one a rank with `replicas.mode` "off".
  int replicas = 1;
  /// The replicas of each rank as ordered exchanges see them.
  OrderedLayout layout;
  /// What each rank carries.
  std::vector<RankShare> ranks;
};

/// Divides a recipe's global batch over ranks.
/// Errors:     kInvalidArgument when there are more ranks than replicas, naming both
WorkDivision divide_work(const Recipe& recipe, int ranks);

/// Returns how many elements a rank sends in an ordered all-reduce: its partials of the others' shards, then its own
/// finished shard to each other rank. The same as ordered_all_reduce's messages, without building them.
std::int64_t ordered_sent_elements(const OrderedLayout& layout, int rank, std::int64_t elements);

/// One phase of the step.
struct StepPhase {
  /// Its name: "input", "forward and backward" ...
  std::string name;
  /// What happens in it.
  std::string what;
  /// Whom a rank waits for.
  std::string waits_for;
};

/// One training step.
struct StepStory {
  /// The recipe's name.
  std::string task;
  /// The division.
  WorkDivision work;
  /// How many parameters the model has; 0 when not known.
  std::int64_t parameters = 0;
  /// How many bytes of gradients each rank has, and into how many buckets at most they are cut; 0 when not known.
  std::int64_t gradient_bytes = 0, buckets = 0;
  /// The groups of ranks, as text.
  std::vector<std::string> groups;
  /// The phases in order.
  std::vector<StepPhase> phases;
};

/// Tells a step of a recipe on some ranks. `parameters` is the number of the model's parameters, 0 when not known:
/// a recipe does not say it.
/// Errors:     see divide_work; kInvalidArgument when parameters are negative
StepStory tell_step(const Recipe& recipe, int ranks, std::int64_t parameters);

/// Returns the story as tables for a terminal. Of many ranks the first and the last are shown.
std::string step_tables(const StepStory& story);

/// Returns {task, ranks, replicas, parameters, gradient_bytes, buckets, groups, shares, phases}; what is not known is
/// null.
nlohmann::ordered_json to_json(const StepStory& story);

}  // namespace convoy::spec

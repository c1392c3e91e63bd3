// One training step told in order: who carries what, what is exchanged, who waits for whom. From the recipe alone.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/spec/document/exchange_price.h"
#include "convoy/spec/document/strategy_card.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/schedule/schedule.h"
#include "convoy/spec/topology.h"

namespace convoy::spec {

/// Returns the size of part `index` of `total` things in `parts` parts: as even as they divide, earlier parts one more, as
/// the sample plan cuts.
std::int64_t even_part(std::int64_t total, std::int64_t parts, std::int64_t index);

/// What one rank carries in a step with a whole global batch.
struct RankShare {
  /// Its replicas.
  ReplicaRange replicas;
  /// The first of its samples in the order of the step, and how many it has.
  std::int64_t first_sample = 0, samples = 0;
  /// The largest and the smallest micro-batch of its replicas.
  std::int64_t most_in_micro_batch = 0, least_in_micro_batch = 0;
  /// How many partial sums of gradients it brings to an exchange, and how many it keeps at most while its replicas run.
  int partials = 0, kept_sums = 0;
  /// The number of its host.
  int host = 0;
  /// About how many bytes of gradients it sends; 0 when the number of parameters is not known.
  std::int64_t sent_bytes = 0;
  /// About how many parameters it updates; 0 when their number is not known.
  std::int64_t updated = 0;
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

/// Returns how the global batch comes about, with exact sizes where it does not divide: "4 replicas x micro-batch 16 x
/// accumulation 2 = 128".
std::string global_batch_words(const Recipe& recipe, int replicas);

/// Who updates what: every rank everything; the ranks of one host each a share of what they have together; the same on each
/// of several hosts.
enum class UpdateDivision { kNone, kOneHost, kSeveralHosts };

/// Returns which of them a recipe's ranks do, given their hosts (empty: one host).
UpdateDivision division_of_update(const Recipe& recipe, int ranks, const HostOfRank& hosts);

/// One phase of the step.
struct StepPhase {
  /// Its name: "input", "forward and backward" ...
  std::string name;
  /// What happens in it.
  std::string what;
  /// The group that exchanges something; empty where nothing is exchanged.
  std::string group;
  /// Whom a rank waits for.
  std::string waits_for;
};

/// Something that does not go as it should, and what then happens.
struct StepEvent {
  /// What it is: "a lost rank" ...
  std::string name;
  /// What happens.
  std::string what;
};

/// One training step.
struct StepStory {
  /// The recipe's name.
  std::string task;
  /// The division.
  WorkDivision work;
  /// The samples of the global batch, the micro-batches of each replica, and how the former comes about.
  std::int64_t samples = 0, accumulation = 1;
  std::string global_batch;
  /// The host of each rank; empty for one host.
  HostOfRank hosts;
  /// Who updates what.
  UpdateDivision update = UpdateDivision::kNone;
  /// Whether buckets are exchanged while backward goes on, and whether a rank's replicas go through each pass together
  /// (synchronised batch norm).
  bool overlap = true, lockstep = false;
  /// How many parameters the model has; 0 when not known.
  std::int64_t parameters = 0;
  /// How many bytes of gradients each rank has; 0 when not known.
  std::int64_t gradient_bytes = 0;
  /// Into which buckets, of so many elements, gradients are cut at most; empty when not known.
  std::vector<std::int64_t> buckets;
  /// The groups of ranks, and where parameters lie, as text.
  std::vector<std::string> groups;
  /// The phases in order.
  std::vector<StepPhase> phases;
  /// What each way to exchange the gradient would send, the one in use first. Empty for one rank.
  std::vector<ExchangePrice> prices;
  /// Which numbers of ranks are aligned splits; nothing with `replicas.mode` "off", where there is nothing to align.
  AlignedSplits aligned;
  /// What a lost rank, a slow one and a number that is not finite change.
  std::vector<StepEvent> events;
  /// The strategy's card.
  StrategyCard card;
};

/// Tells a step of a recipe on some ranks. `parameters` is the number of the model's parameters, 0 when not known:
/// a recipe does not say it. `bucket_source` says where the size of buckets comes from; empty where nobody looked for it.
/// Errors:     see divide_work; kInvalidArgument when parameters are negative or `comm.hosts` names hosts of another
///             number of ranks
StepStory tell_step(const Recipe& recipe, int ranks, std::int64_t parameters, const std::string& bucket_source = "");

/// Returns the story as tables for a terminal, with the picture. Of many ranks the first and the last are shown.
std::string step_tables(const StepStory& story);

/// Returns {task, ranks, replicas, global_batch, parameters, gradient_bytes, buckets, update, groups, shares, phases,
/// exchanges, aligned_splits, events, card, picture}; what is not known is null.
nlohmann::ordered_json to_json(const StepStory& story);

}  // namespace convoy::spec

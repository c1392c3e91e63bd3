#include "convoy/spec/document/step_story.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/blocks.h"

namespace convoy::spec {
namespace {

using Json = nlohmann::ordered_json;

// How many ranks a terminal shows at each end of the list.
constexpr std::size_t kShownRanks = 8;

// The size of part `index` of `parts` of `total`, as even as it divides, earlier parts one more: as the sample plan cuts.
std::int64_t part_size(std::int64_t total, std::int64_t parts, std::int64_t index) {
  return total / parts + (index < total % parts ? 1 : 0);
}

std::int64_t element_bytes_of(const Recipe& recipe) { return recipe.model.dtype == "float64" ? 8 : 4; }

// At most these buckets, in elements: the first is closed at a quarter, so that the exchange starts early.
std::vector<std::int64_t> bucket_elements(const Recipe& recipe, std::int64_t parameters) {
  const std::int64_t whole = std::max<std::int64_t>(1, recipe.parallel.bucket_bytes / element_bytes_of(recipe));
  std::vector<std::int64_t> buckets;
  for (std::int64_t left = parameters; left > 0; left -= buckets.back()) {
    buckets.push_back(std::min(left, buckets.empty() ? std::max<std::int64_t>(1, whole / 4) : whole));
  }
  return buckets;
}

RankShare share_of(const Recipe& recipe, int replicas, ReplicaRange range) {
  RankShare share;
  share.replicas = range;
  share.partials = static_cast<int>(maximal_subtrees(replicas, range).size());
  share.least_in_micro_batch = recipe.train.global_batch;
  for (int replica = range.begin; replica < range.end; ++replica) {
    const std::int64_t samples = part_size(recipe.train.global_batch, replicas, replica);
    share.samples += samples;
    const std::int64_t accumulation = recipe.train.accumulation;
    share.most_in_micro_batch = std::max(share.most_in_micro_batch, part_size(samples, accumulation, 0));
    share.least_in_micro_batch =
        std::min(share.least_in_micro_batch, part_size(samples, accumulation, accumulation - 1));
  }
  return share;
}

std::string span_words(const RankShare& share) {
  const ReplicaRange& range = share.replicas;
  return range.size() == 1 ? fmt::to_string(range.begin) : fmt::format("{} to {}", range.begin, range.end - 1);
}

std::string sizes_words(const RankShare& share) {
  if (share.least_in_micro_batch == share.most_in_micro_batch) return fmt::to_string(share.most_in_micro_batch);
  return fmt::format("{} or {}", share.least_in_micro_batch, share.most_in_micro_batch);
}

std::string bytes_words(std::int64_t bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

std::vector<StepPhase> forward_phases(const Recipe& recipe) {
  const std::string micro = recipe.train.accumulation == 1 ? "its samples in one pass"
                                                           : fmt::format("its {} micro-batches, whose gradients add up",
                                                                         recipe.train.accumulation);
  return {
      {"input",
       fmt::format("each rank takes its replicas' samples, which a thread of its own prepares up to {} steps ahead",
                   recipe.data.prefetch),
       "its own loader"},
      {"forward and backward",
       fmt::format("for each of its replicas in turn, a rank puts the replica's buffers in and works through {}",
                   micro),
       "nobody"},
      {"sum on the rank", "the gradients of the rank's replicas are added along the canonical tree to partial sums",
       "nobody"},
  };
}

// What is known of the sum of a bucket before the ranks have met.
std::string sum_words(const CommRecipe& comm, std::string_view when) {
  if (comm.algorithm != "auto" && comm.algorithm != "ordered_exchange") {
    return fmt::format("each by {} {}", comm.algorithm, when);
  }
  const bool open = comm.algorithm == "auto" && (comm.transport != "shared_memory" || !comm.hosts.empty());
  return fmt::format(
      "each by ordered_exchange{} {}: a rank adds all partial sums of its shard along the tree, then "
      "gives the finished shard to all",
      open ? ", unless hosts or the calibration make another one quicker," : "", when);
}

StepPhase exchange_phase(const Recipe& recipe, const StepStory& story) {
  const std::string_view when =
      recipe.parallel.overlap ? "as soon as it is complete, while backward goes on" : "once backward has ended";
  const std::string cut =
      story.parameters == 0
          ? fmt::format("buckets of about {}", bytes_words(recipe.parallel.bucket_bytes))
          : fmt::format("{} of gradients in at most {} bucket{} of about {}", bytes_words(story.gradient_bytes),
                        story.buckets, story.buckets == 1 ? "" : "s", bytes_words(recipe.parallel.bucket_bytes));
  if (story.work.ranks.size() == 1) {
    return {"exchange of gradients", cut + ": one rank has all partial sums; nothing is sent", "nobody"};
  }
  return {"exchange of gradients", fmt::format("{}; {}", cut, sum_words(recipe.comm, when)),
          "every other rank: for its partial sums, then for finished ones"};
}

std::vector<StepPhase> closing_phases(const Recipe& recipe, const StepStory& story) {
  const bool alone = story.work.ranks.size() == 1;
  const std::string blocks = story.parameters == 0
                                 ? fmt::format("a number for each {} parameters", kBlockElements)
                                 : fmt::format("{} numbers", (story.parameters + kBlockElements - 1) / kBlockElements);
  const std::string interval = recipe.checkpoint.every_steps == 0
                                   ? "no checkpoint before the end"
                                   : fmt::format("a checkpoint every {} steps", recipe.checkpoint.every_steps);
  return {
      {"exchange of facts",
       fmt::format("losses and counts of {} replica{}, used parameters and times of arrival: an all-reduce of doubles",
                   story.work.replicas, story.work.replicas == 1 ? "" : "s"),
       alone ? "nobody" : "the slowest rank"},
      {"norm and check",
       fmt::format(
           "each rank squares its shard, all sums of blocks ({}) are exchanged; a value that is not finite ends "
           "the run{}",
           blocks, recipe.train.clip_norm > 0 ? fmt::format("; clipped at {}", recipe.train.clip_norm) : ""),
       alone ? "nobody" : "every other rank"},
      {"update",
       fmt::format("each rank updates all of its parameters with {}, by the same arithmetic", recipe.train.optimizer),
       "nobody"},
      {"record", fmt::format("each rank notes its samples in the ledger; {}", interval), "nobody"},
  };
}

}  // namespace

WorkDivision divide_work(const Recipe& recipe, int ranks) {
  WorkDivision work;
  work.replicas = recipe.replicas.mode == "off" ? ranks : static_cast<int>(recipe.replicas.count);
  work.layout = {work.replicas, deal_replicas(work.replicas, ranks)};
  for (const ReplicaRange& range : work.layout.owners) work.ranks.push_back(share_of(recipe, work.replicas, range));
  return work;
}

std::int64_t ordered_sent_elements(const OrderedLayout& layout, int rank, std::int64_t elements) {
  const int ranks = static_cast<int>(layout.owners.size());
  const std::int64_t own = shard_range(elements, ranks, rank).size();
  const auto partials =
      static_cast<std::int64_t>(maximal_subtrees(layout.leaves, layout.owners[static_cast<std::size_t>(rank)]).size());
  return partials * (elements - own) + (ranks - 1) * own;
}

StepStory tell_step(const Recipe& recipe, int ranks, std::int64_t parameters) {
  if (parameters < 0) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a model cannot have {} parameters", parameters));
  }
  StepStory story;
  story.task = recipe.task.name;
  story.work = divide_work(recipe, ranks);
  story.parameters = parameters;
  story.gradient_bytes = parameters * element_bytes_of(recipe);
  const std::vector<std::int64_t> buckets = bucket_elements(recipe, parameters);
  story.buckets = static_cast<std::int64_t>(buckets.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (const std::int64_t elements : buckets) {
      story.work.ranks[static_cast<std::size_t>(rank)].sent_bytes +=
          ordered_sent_elements(story.work.layout, rank, elements) * element_bytes_of(recipe);
    }
  }
  story.groups = {fmt::format("world: rank{} over {}, every wait ends after {} s",
                              ranks == 1 ? " 0" : fmt::format("s 0 to {}", ranks - 1), recipe.comm.transport,
                              recipe.comm.timeout_s)};
  story.phases = forward_phases(recipe);
  story.phases.push_back(exchange_phase(recipe, story));
  for (StepPhase& phase : closing_phases(recipe, story)) story.phases.push_back(std::move(phase));
  return story;
}

std::string step_tables(const StepStory& story) {
  const std::vector<RankShare>& shares = story.work.ranks;
  std::string text =
      fmt::format("One training step of {} on {} rank{}, {} replica{}\n\n", story.task, shares.size(),
                  shares.size() == 1 ? "" : "s", story.work.replicas, story.work.replicas == 1 ? "" : "s");
  for (const std::string& group : story.groups) text += fmt::format("group {}\n", group);
  TextTable ranks({"rank", "replicas", "samples", "a micro-batch", "partial sums", "sends"});
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (rank == kShownRanks && shares.size() > 2 * kShownRanks) {
      rank = shares.size() - kShownRanks;
      ranks.add({"..."});
    }
    const RankShare& share = shares[rank];
    ranks.add({fmt::to_string(rank), span_words(share), fmt::to_string(share.samples), sizes_words(share),
               fmt::to_string(share.partials),
               story.parameters == 0 && shares.size() > 1 ? "-" : "about " + bytes_words(share.sent_bytes)});
  }
  text += "\n" + ranks.str() + "\n";
  int number = 0;
  for (const StepPhase& phase : story.phases) {
    text += fmt::format("{}. {}: {}\n   waits for {}\n", ++number, phase.name, phase.what, phase.waits_for);
  }
  if (story.parameters == 0) {
    text +=
        "\nThe bytes need the number of parameters: give --parameters N, or --baseline with the directory of a run.\n";
  }
  return text;
}

nlohmann::ordered_json to_json(const StepStory& story) {
  const auto known = [&](std::int64_t value) { return story.parameters == 0 ? Json(nullptr) : Json(value); };
  Json json = {{"task", story.task},
               {"ranks", story.work.ranks.size()},
               {"replicas", story.work.replicas},
               {"parameters", known(story.parameters)},
               {"gradient_bytes", known(story.gradient_bytes)},
               {"buckets", known(story.buckets)},
               {"groups", story.groups},
               {"shares", Json::array()},
               {"phases", Json::array()}};
  for (std::size_t rank = 0; rank < story.work.ranks.size(); ++rank) {
    const RankShare& share = story.work.ranks[rank];
    json["shares"].push_back({{"rank", rank},
                              {"replicas", {share.replicas.begin, share.replicas.end}},
                              {"samples", share.samples},
                              {"micro_batch", {share.least_in_micro_batch, share.most_in_micro_batch}},
                              {"partial_sums", share.partials},
                              {"sent_bytes", known(share.sent_bytes)}});
  }
  for (const StepPhase& phase : story.phases) {
    json["phases"].push_back({{"name", phase.name}, {"what", phase.what}, {"waits_for", phase.waits_for}});
  }
  return json;
}

}  // namespace convoy::spec

// Tells the step: the division first, then what is exchanged, then the phases with these numbers.
#include "convoy/spec/document/step_story.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/document/plan_sections.h"

namespace convoy::spec {
namespace {

constexpr const char* kWorld = "world";

std::int64_t element_bytes_of(const Recipe& recipe) { return recipe.model.dtype == "float64" ? 8 : 4; }

std::string bytes_words(std::int64_t bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

// At most these buckets, in elements: the first is closed at a quarter, so that the exchange starts early.
std::vector<std::int64_t> bucket_elements(const Recipe& recipe, std::int64_t parameters) {
  const std::int64_t whole = std::max<std::int64_t>(1, recipe.parallel.known_bucket_bytes() / element_bytes_of(recipe));
  std::vector<std::int64_t> buckets;
  for (std::int64_t left = parameters; left > 0; left -= buckets.back()) {
    buckets.push_back(std::min(left, buckets.empty() ? std::max<std::int64_t>(1, whole / 4) : whole));
  }
  return buckets;
}

RankShare share_of(const Recipe& recipe, int replicas, ReplicaRange range) {
  const std::int64_t batch = recipe.train.global_batch;
  RankShare share;
  share.replicas = range;
  share.partials = static_cast<int>(maximal_subtrees(replicas, range).size());
  share.kept_sums = most_kept_sums(replicas, range);
  share.first_sample = range.begin * (batch / replicas) + std::min<std::int64_t>(range.begin, batch % replicas);
  share.least_in_micro_batch = batch;
  for (int replica = range.begin; replica < range.end; ++replica) {
    const std::int64_t samples = even_part(batch, replicas, replica);
    share.samples += samples;
    const std::int64_t accumulation = recipe.train.accumulation;
    share.most_in_micro_batch = std::max(share.most_in_micro_batch, even_part(samples, accumulation, 0));
    share.least_in_micro_batch =
        std::min(share.least_in_micro_batch, even_part(samples, accumulation, accumulation - 1));
  }
  return share;
}

// "4 replicas x micro-batch 16 x accumulation 2" for replicas of so many samples.
std::string replica_words(std::int64_t replicas, std::int64_t samples, std::int64_t accumulation) {
  const std::int64_t more = samples % accumulation;
  const std::int64_t least = samples / accumulation;
  if (more == 0) {
    return fmt::format("{} x micro-batch {} x accumulation {}", counted(replicas, "replica"), least, accumulation);
  }
  return fmt::format("{} x ({} micro-batch{} of {} + {} of {})", counted(replicas, "replica"), more,
                     more == 1 ? "" : "es", least + 1, accumulation - more, least);
}

// The algorithm that sums gradients over all ranks, where the calibration does not know a quicker one.
std::string algorithm_of(const Recipe& recipe, const StepStory& story) {
  if (story.update == UpdateDivision::kOneHost) return "ordered_exchange";
  if (recipe.comm.algorithm != "auto") return recipe.comm.algorithm;
  const std::size_t ranks = story.work.ranks.size();
  const std::size_t hosts = ranks_by_host(static_cast<int>(ranks), story.hosts).size();
  const bool hosts_share = hosts > 1 && hosts < ranks;
  return hosts_share && fits_exchange("all_reduce", "ordered_hierarchical", story.work.layout, story.hosts)
             ? "ordered_hierarchical"
             : "ordered_exchange";
}

void price(const Recipe& recipe, StepStory& story) {
  if (story.work.ranks.size() == 1) return;
  std::vector<std::int64_t> elements = story.buckets;
  // So large a gradient that shares of whole blocks are as good as equal.
  if (elements.empty()) elements = {static_cast<std::int64_t>(story.work.ranks.size()) << 20};
  const auto add = [&](const char* collective, const std::string& algorithm) {
    for (const ExchangePrice& known : story.prices) {
      if (known.collective == collective && known.algorithm == algorithm) return;
    }
    story.prices.push_back(price_exchange(collective, algorithm, story.work.layout, story.hosts, elements));
  };
  const std::string used = algorithm_of(recipe, story);
  if (story.update == UpdateDivision::kOneHost) {
    add("reduce_scatter", used);
    add("reduce_scatter", "ring");
    add("all_reduce", "ordered_exchange");
  } else {
    add("all_reduce", used);
  }
  add("all_reduce", "ring");
  story.prices.front().used = true;
  // Without replicas each rank is a leaf of the tree, whose shape then depends on their number.
  if (recipe.replicas.mode == "off") {
    for (ExchangePrice& price : story.prices) price.ordered = false;
  }
  if (story.parameters == 0) return;
  for (std::size_t rank = 0; rank < story.work.ranks.size(); ++rank) {
    story.work.ranks[rank].sent_bytes = story.prices.front().sent_elements[rank] * element_bytes_of(recipe);
  }
}

// How many parameters each rank updates: with whole blocks as shards.
void deal_update(StepStory& story) {
  const int ranks = static_cast<int>(story.work.ranks.size());
  for (const std::vector<int>& host : ranks_by_host(ranks, story.hosts)) {
    const int sharers = static_cast<int>(host.size());
    for (int place = 0; place < sharers; ++place) {
      std::int64_t& updated = story.work.ranks[static_cast<std::size_t>(host[static_cast<std::size_t>(place)])].updated;
      switch (story.update) {
        case UpdateDivision::kNone: updated = story.parameters; break;
        case UpdateDivision::kSeveralHosts: updated = shard_range(story.parameters, sharers, place).size(); break;
        case UpdateDivision::kOneHost:
          for (const std::int64_t elements : story.buckets) updated += shard_range(elements, sharers, place).size();
      }
    }
  }
}

std::string rank_words(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", number_words(ranks));
}

// What an update changes.
std::string state_words(const Recipe& recipe) {
  const bool moments = recipe.train.optimizer != "sgd" || recipe.train.momentum != 0.0;
  return moments ? "parameters and moments" : "parameters";
}

std::vector<std::string> group_words(const Recipe& recipe, const StepStory& story) {
  const int ranks = static_cast<int>(story.work.ranks.size());
  std::vector<std::string> groups = {fmt::format("{}: rank{} over {}, every wait ends after {} s", kWorld,
                                                 ranks == 1 ? " 0" : fmt::format("s 0 to {}", ranks - 1),
                                                 recipe.comm.transport, recipe.comm.timeout_s)};
  if (recipe.parallel.share == "auto" && ranks > 1) {
    groups.front() +=
        "; replicas are told as dealt to equally fast ranks, and a run measures that first (parallel.share)";
  }
  if (story.update == UpdateDivision::kNone) return groups;
  int number = 0;
  for (const std::vector<int>& host : ranks_by_host(ranks, story.hosts)) {
    groups.push_back(fmt::format("host {}: {}; {}{} lie once in its memory", number++, rank_words(host),
                                 state_words(recipe),
                                 story.update == UpdateDivision::kOneHost ? ", and the summed gradient," : ""));
  }
  if (recipe.comm.transport != "shared_memory" && recipe.comm.hosts.empty()) {
    groups.front() += "; told as if on one host, since comm.hosts names none";
  }
  return groups;
}

std::vector<StepPhase> forward_phases(const Recipe& recipe, const StepStory& story) {
  const std::string micro = recipe.train.accumulation == 1 ? "its samples in one pass"
                                                           : fmt::format("its {} micro-batches, whose gradients add up",
                                                                         recipe.train.accumulation);
  const std::string_view place = story.update == UpdateDivision::kNone
                                     ? "each rank has all of them in memory of its own"
                                     : "the ranks of a host read the same ones, where they lie in its memory";
  const std::string replicas =
      story.lockstep ? "the replicas of a rank go through each pass together: in turn, with its buffers in, each"
                     : "for each of its replicas in turn, a rank puts the replica's buffers in and";
  const std::string_view meeting =
      story.lockstep ? "; at layers of synchronised batch norm all replicas of all ranks add up their sums and counts"
                     : "";
  const bool meets = story.lockstep && story.work.ranks.size() > 1;
  return {
      {"input",
       fmt::format("each rank takes its replicas' samples, which a thread of its own prepares up to {} ahead",
                   counted(recipe.data.prefetch, "step")),
       "", "its own loader"},
      {"forward and backward",
       fmt::format("{} works through {}, with all parameters as the last step left them: {}{}", replicas, micro, place,
                   meeting),
       meets ? kWorld : "", meets ? "every other rank, at each layer of synchronised batch norm" : "nobody"},
      {"sum on the rank",
       "the gradients of the rank's replicas, each summed over its samples, are added along the canonical tree to "
       "partial "
       "sums",
       "", "nobody"},
  };
}

// What is known of the sum of a bucket before the ranks have met.
std::string sum_words(const Recipe& recipe, const StepStory& story, std::string_view when) {
  const std::string& algorithm = story.prices.front().algorithm;
  const std::string_view sum = "a sum over all replicas along the canonical tree";
  if (story.update == UpdateDivision::kOneHost) {
    return fmt::format(
        "each by reduce_scatter {} {}: a rank adds all partial sums of its shard, {}, where they lie, into "
        "sums that the host has once{}",
        algorithm, when, sum,
        recipe.comm.algorithm == "auto" || recipe.comm.algorithm == algorithm
            ? ""
            : fmt::format(" (comm.algorithm {} is for an all_reduce)", recipe.comm.algorithm));
  }
  if (!story.prices.front().ordered) {
    return fmt::format("each by all_reduce {} {}: a sum over all ranks, in an order that depends on their number",
                       algorithm, when);
  }
  const bool open =
      recipe.comm.algorithm == "auto" && (recipe.comm.transport != "shared_memory" || !story.hosts.empty());
  return fmt::format("each by all_reduce {}{} {}: {}, shard by shard; the finished shards are then given to all",
                     algorithm, open ? ", unless the calibration knows a quicker one," : "", when, sum);
}

StepPhase exchange_phase(const Recipe& recipe, const StepStory& story, const std::string& bucket_source) {
  const std::string_view when =
      recipe.parallel.overlap ? "as soon as it is complete, while backward goes on" : "once backward has ended";
  const std::string size = bytes_words(recipe.parallel.known_bucket_bytes()) +
                           (bucket_source.empty() ? "" : fmt::format(" ({})", bucket_source));
  const std::string cut =
      story.parameters == 0
          ? fmt::format("buckets of about {}", size)
          : fmt::format("{} of gradients in at most {} of about {}", bytes_words(story.gradient_bytes),
                        counted(static_cast<std::int64_t>(story.buckets.size()), "bucket"), size);
  if (story.work.ranks.size() == 1) {
    return {"exchange of gradients", cut + ": one rank has all partial sums; nothing is sent", "", "nobody"};
  }
  return {"exchange of gradients", fmt::format("{}; {}", cut, sum_words(recipe, story, when)), kWorld,
          story.update == UpdateDivision::kOneHost ? "every other rank: for its partial sums of each bucket"
                                                   : "every other rank: for its partial sums, then for finished ones"};
}

std::int64_t block_count(const StepStory& story) { return (story.parameters + kBlockElements - 1) / kBlockElements; }

std::string blocks_words(const StepStory& story) {
  return story.parameters == 0 ? fmt::format("one for each {} parameters", kBlockElements)
                               : fmt::format("{} of them", block_count(story));
}

StepPhase facts_phase(const StepStory& story) {
  const auto ranks = static_cast<std::int64_t>(story.work.ranks.size());
  const std::int64_t numbers = 2 * (story.work.replicas + ranks);
  const std::string common =
      fmt::format("losses and counts of {}, own work and times of arrival of {}, and which parameters were used",
                  counted(story.work.replicas, "replica"), counted(ranks, "rank"));
  if (ranks == 1) return {"exchange of facts", common + ": nothing is sent", "", "nobody"};
  if (story.update != UpdateDivision::kOneHost) {
    return {"exchange of facts",
            fmt::format("{}: an all_reduce of {} and 16 B for each parameter tensor, behind the buckets", common,
                        bytes_words(8 * numbers)),
            kWorld, "the slowest rank"};
  }
  return {"exchange of facts",
          fmt::format(
              "{}; with them the sums of squares of canonical blocks, {}, which each rank has formed of its shards: "
              "one all_reduce of {} and 16 B for each parameter tensor, once the buckets are there",
              common, blocks_words(story),
              story.parameters == 0 ? bytes_words(8 * numbers) + ", 8 B for each block"
                                    : bytes_words(8 * (numbers + block_count(story)))),
          kWorld, "the slowest rank"};
}

StepPhase norm_phase(const Recipe& recipe, const StepStory& story) {
  const std::string check =
      fmt::format("; a value that is not finite ends the run on all ranks{}",
                  recipe.train.clip_norm > 0 ? fmt::format("; clipped at {}", recipe.train.clip_norm) : "");
  const std::string_view sums = "the sums of squares of all blocks are added in canonical order to the norm";
  if (story.work.ranks.size() == 1) return {"norm and check", fmt::format("{}{}", sums, check), "", "nobody"};
  if (story.update == UpdateDivision::kOneHost) {
    return {"norm and check",
            fmt::format("on each rank {}; blocks that lie in several shards it squares itself{}", sums, check), "",
            "nobody"};
  }
  return {
      "norm and check",
      fmt::format("each rank squares its shard, an all_reduce brings the sums of all blocks together ({}{}), and {}{}",
                  blocks_words(story), story.parameters == 0 ? "" : ", " + bytes_words(8 * block_count(story)), sums,
                  check),
      kWorld, "every other rank"};
}

std::vector<StepPhase> update_phases(const Recipe& recipe, const StepStory& story) {
  const std::string mean =
      "the sum divided by the number of samples that counted, so the mean over samples and never a mean of means";
  if (story.update == UpdateDivision::kNone) {
    return {{"update",
             fmt::format("each rank updates all of its parameters with {}, by the same arithmetic; the gradient is {}",
                         recipe.train.optimizer, mean),
             "", "nobody"}};
  }
  const std::string_view share =
      story.update == UpdateDivision::kOneHost ? "the shards that it has summed" : "its part of its host's parameters";
  return {{"update",
           fmt::format("each rank updates {} with {}, block by block with a journal; the gradient is {}", share,
                       recipe.train.optimizer, mean),
           "", "nobody"},
          {"barrier", "all shares are updated before any rank goes on to read the parameters", kWorld,
           "every other rank: for its share of the update"}};
}

StepPhase record_phase(const Recipe& recipe) {
  const std::string interval =
      recipe.checkpoint.every_steps == 0
          ? "no checkpoint before the end"
          : fmt::format("a checkpoint every {}", counted(recipe.checkpoint.every_steps, "step"));
  return {"record", fmt::format("each rank notes its samples in the ledger; {}", interval), "", "nobody"};
}

std::vector<StepEvent> events_of(const Recipe& recipe, const StepStory& story) {
  const bool off = recipe.replicas.mode == "off";
  const bool alone = story.work.ranks.size() == 1;
  const std::string from =
      recipe.checkpoint.every_steps == 0
          ? "the beginning, since no checkpoint is saved before the end (checkpoint.every_steps is 0)"
          : fmt::format("the newest checkpoint, at most {} back", counted(recipe.checkpoint.every_steps, "step"));
  const std::string on = off ? fmt::format("{}, since without replicas the result depends on their number",
                                           counted(static_cast<std::int64_t>(story.work.ranks.size()), "rank"))
                             : fmt::format("any number of ranks from 1 to {}, with the same bits", story.work.replicas);
  std::vector<StepEvent> events;
  events.push_back(
      {"a lost rank",
       fmt::format("ends the run, {}with status 3 and its name; convoy run --resume goes on from {}, on {}",
                   alone ? "" : fmt::format("on all ranks within {} s, ", recipe.comm.timeout_s), from, on)});
  if (story.update != UpdateDivision::kNone) {
    events.push_back(
        {"a rank lost in an update",
         "leaves part of its share as it was; the journal in the host's memory lets the other ranks of the "
         "host finish the update with the right bits (Optimizer::settle), for programs that go on without it. "
         "convoy run does not: it ends as above"});
  }
  if (!alone) {
    events.push_back(
        {"a slow rank",
         "holds everybody up: the others wait for its buckets and facts. On them the time is wait_slowest, on "
         "it own work, and convoy run names it when its own work takes 1.5 times the median rank's"});
  }
  events.push_back(
      {"a number that is not finite",
       "in a loss or gradient ends the run on all ranks in the same step, before any update, and is named with "
       "its rank"});
  return events;
}

}  // namespace

std::int64_t even_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
  return total / parts + (index < total % parts ? 1 : 0);
}

WorkDivision divide_work(const Recipe& recipe, int ranks) {
  WorkDivision work;
  work.replicas = recipe.replicas.mode == "off" ? ranks : static_cast<int>(recipe.replicas.count);
  work.layout = {work.replicas, deal_replicas(work.replicas, ranks)};
  for (const ReplicaRange& range : work.layout.owners) work.ranks.push_back(share_of(recipe, work.replicas, range));
  return work;
}

std::string global_batch_words(const Recipe& recipe, int replicas) {
  const std::int64_t batch = recipe.train.global_batch;
  const std::int64_t accumulation = recipe.train.accumulation;
  const std::int64_t more = batch % replicas;
  const std::int64_t least = batch / replicas;
  std::string words = more > 0 ? replica_words(more, least + 1, accumulation) + " + " : "";
  return fmt::format("{}{} = {}", words, replica_words(replicas - more, least, accumulation), batch);
}

UpdateDivision division_of_update(const Recipe& recipe, int ranks, const HostOfRank& hosts) {
  const std::vector<std::vector<int>> by_host = ranks_by_host(ranks, hosts);
  const bool together = std::any_of(by_host.begin(), by_host.end(), [](const auto& host) { return host.size() > 1; });
  if (!recipe.parallel.divide_update || !together) return UpdateDivision::kNone;
  return by_host.size() == 1 ? UpdateDivision::kOneHost : UpdateDivision::kSeveralHosts;
}

StepStory tell_step(const Recipe& recipe, int ranks, std::int64_t parameters, const std::string& bucket_source) {
  if (parameters < 0) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a model cannot have {} parameters", parameters));
  }
  StepStory story;
  story.task = recipe.task.name;
  story.work = divide_work(recipe, ranks);
  story.samples = recipe.train.global_batch;
  story.accumulation = recipe.train.accumulation;
  story.global_batch = global_batch_words(recipe, story.work.replicas);
  story.hosts = hosts_of_recipe(recipe.comm.hosts, ranks);
  for (std::size_t rank = 0; rank < story.hosts.size(); ++rank) story.work.ranks[rank].host = story.hosts[rank];
  story.update = division_of_update(recipe, ranks, story.hosts);
  story.overlap = recipe.parallel.overlap;
  story.lockstep = recipe.model.sync_batch_norm;
  story.parameters = parameters;
  story.gradient_bytes = parameters * element_bytes_of(recipe);
  story.buckets = bucket_elements(recipe, parameters);
  price(recipe, story);
  deal_update(story);
  if (recipe.replicas.mode != "off") story.aligned = aligned_splits(story.work.replicas);
  story.groups = group_words(recipe, story);
  story.phases = forward_phases(recipe, story);
  story.phases.push_back(exchange_phase(recipe, story, bucket_source));
  story.phases.push_back(facts_phase(story));
  story.phases.push_back(norm_phase(recipe, story));
  for (StepPhase& phase : update_phases(recipe, story)) story.phases.push_back(std::move(phase));
  story.phases.push_back(record_phase(recipe));
  story.events = events_of(recipe, story);
  story.card =
      strategy_card(recipe.parallel.strategy, story.update == UpdateDivision::kNone ? kWholeUpdate : kDividedUpdate);
  return story;
}

}  // namespace convoy::spec

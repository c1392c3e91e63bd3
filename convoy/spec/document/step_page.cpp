// Writes a step's story: as tables for a terminal, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "convoy/base/text.h"
#include "convoy/spec/document/step_picture.h"
#include "convoy/spec/document/step_story.h"

namespace convoy::spec {
namespace {

using Json = nlohmann::ordered_json;

// How many ranks a terminal shows at each end of the list.
constexpr std::size_t kShownRanks = 8;

std::string bytes_words(std::int64_t bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

std::string range_words(std::int64_t first, std::int64_t count) {
  if (count == 0) return "none";
  return count == 1 ? fmt::to_string(first) : fmt::format("{} to {}", first, first + count - 1);
}

std::string sizes_words(const RankShare& share) {
  if (share.least_in_micro_batch == share.most_in_micro_batch) return fmt::to_string(share.most_in_micro_batch);
  return fmt::format("{} or {}", share.least_in_micro_batch, share.most_in_micro_batch);
}

std::string gradients_words(double gradients) { return fmt::format("{:.2f} gradients", gradients); }

// What a rank sends, in bytes as far as they are known.
std::string sent_words(const StepStory& story, std::size_t rank) {
  if (story.prices.empty()) return "nothing";
  if (story.parameters > 0) return "about " + bytes_words(story.work.ranks[rank].sent_bytes);
  const ExchangePrice& used = story.prices.front();
  return gradients_words(static_cast<double>(used.sent_elements[rank]) / static_cast<double>(used.elements));
}

std::string rank_table(const StepStory& story) {
  const std::vector<RankShare>& shares = story.work.ranks;
  std::vector<std::string> heads = {"rank",          "replicas",     "samples of the step", "number",
                                    "a micro-batch", "partial sums", "sums kept",           "sends"};
  if (!story.hosts.empty()) heads.emplace_back("host");
  if (story.parameters > 0) heads.emplace_back("updates");
  TextTable table(std::move(heads));
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (rank == kShownRanks && shares.size() > 2 * kShownRanks) {
      rank = shares.size() - kShownRanks;
      table.add({"..."});
    }
    const RankShare& share = shares[rank];
    std::vector<std::string> row = {fmt::to_string(rank),
                                    range_words(share.replicas.begin, share.replicas.size()),
                                    range_words(share.first_sample, share.samples),
                                    fmt::to_string(share.samples),
                                    sizes_words(share),
                                    fmt::to_string(share.partials),
                                    fmt::to_string(share.kept_sums),
                                    sent_words(story, rank)};
    if (!story.hosts.empty()) row.push_back(fmt::to_string(share.host));
    if (story.parameters > 0) row.push_back(fmt::to_string(share.updated));
    table.add(std::move(row));
  }
  return table.str();
}

const ExchangePrice& price_of(const StepStory& story, std::string_view collective, std::string_view algorithm) {
  return *std::find_if(story.prices.begin(), story.prices.end(), [&](const ExchangePrice& price) {
    return price.collective == collective && price.algorithm == algorithm;
  });
}

// The way in use beside the ring of the same operation, whose sums depend on the ranks.
double price_beside_ring(const StepStory& story) {
  const ExchangePrice& used = story.prices.front();
  const double ring = price_of(story, used.collective, "ring").most_gradients();
  return ring > 0 ? used.most_gradients() / ring : 1.0;
}

int most_kept(const StepStory& story) {
  int most = 0;
  for (const RankShare& share : story.work.ranks) most = std::max(most, share.kept_sums);
  return most;
}

bool is_aligned(const StepStory& story) {
  return std::all_of(story.work.ranks.begin(), story.work.ranks.end(),
                     [](const RankShare& share) { return share.partials == 1; });
}

// What most_kept can be at most, with any split of its kind; logarithms rounded down.
int kept_bound(const StepStory& story) {
  const auto log2 = [](int number) { return std::bit_width(static_cast<unsigned>(number)) - 1; };
  if (!is_aligned(story)) return 2 * log2(story.work.replicas) + 1;
  return log2(story.work.ranks.front().replicas.size()) + 1;
}

std::string advice(const StepStory& story) {
  const AlignedSplits& splits = story.aligned;
  if (splits.looked_at == 0) return "";
  return fmt::format(
      "This split is {}. Aligned splits of {} replicas: {} rank{} with equal work, {} with unequal work{}.\n",
      is_aligned(story) ? "aligned" : "not aligned", story.work.replicas, number_words(splits.even),
      splits.even.size() == 1 ? "" : "s", number_words(splits.uneven),
      splits.looked_at < story.work.replicas ? fmt::format(" (up to {} ranks were looked at)", splits.looked_at) : "");
}

std::string kept_words(const StepStory& story) {
  const int most = most_kept(story);
  const std::string size = story.parameters == 0 ? "" : fmt::format(", {}", bytes_words(most * story.gradient_bytes));
  return fmt::format(
      "A rank keeps at most {} partial sum{} of the size of a gradient{} from one replica to the next "
      "({}, so never more than {}: {}, plus 1). The next replica's gradients come on top, one by one as they "
      "are added.\n",
      most, most == 1 ? "" : "s", size, is_aligned(story) ? "aligned" : "not aligned", kept_bound(story),
      is_aligned(story) ? "log2 of a rank's replicas" : "2 log2 of all replicas");
}

std::string price_words(const StepStory& story) {
  if (story.prices.empty()) return "Price of reproducibility\n\n" + kept_words(story) + advice(story);
  TextTable table({"one gradient by", "same bits on any ranks", "rank that sends most", "all ranks", "used"});
  for (const ExchangePrice& price : story.prices) {
    const auto sent = [&](double gradients) {
      const double bytes = gradients * static_cast<double>(story.gradient_bytes);
      return story.parameters == 0 ? gradients_words(gradients)
                                   : fmt::format("{}, {}", gradients_words(gradients),
                                                 bytes_words(static_cast<std::int64_t>(bytes + 0.5)));
    };
    table.add({fmt::format("{} {}", price.collective, price.algorithm), price.ordered ? "yes" : "no",
               sent(price.most_gradients()), sent(price.all_gradients()), price.used ? "here" : ""});
  }
  const ExchangePrice& used = story.prices.front();
  const std::string beside =
      !used.ordered
          ? "Sums depend on the number of ranks.\n"
          : fmt::format(
                "The rank that sends most sends {:.2f} times what it would by a ring {}, whose sums depend on the "
                "number of ranks.\n",
                price_beside_ring(story), used.collective);
  return "Price of reproducibility\n\n" + table.str() + "\n" + beside + kept_words(story) + advice(story);
}

Json price_json(const StepStory& story, const ExchangePrice& price) {
  const std::int64_t element = story.parameters == 0 ? 0 : story.gradient_bytes / story.parameters;
  Json bytes = nullptr;
  if (story.parameters > 0) {
    bytes = Json::array();
    for (const std::int64_t elements : price.sent_elements) bytes.push_back(elements * element);
  }
  return {{"collective", price.collective},
          {"algorithm", price.algorithm},
          {"same_bits_on_any_ranks", price.ordered},
          {"used", price.used},
          {"most_gradients", price.most_gradients()},
          {"all_gradients", price.all_gradients()},
          {"sent_bytes", std::move(bytes)}};
}

std::string_view update_word(UpdateDivision update) {
  switch (update) {
    case UpdateDivision::kOneHost: return "divided on one host";
    case UpdateDivision::kSeveralHosts: return "divided on each host";
    case UpdateDivision::kNone: break;
  }
  return "whole on each rank";
}

}  // namespace

std::string step_tables(const StepStory& story) {
  const std::size_t ranks = story.work.ranks.size();
  std::string text = fmt::format("One training step of {} on {} rank{}, {} replica{}\n\n", story.task, ranks,
                                 ranks == 1 ? "" : "s", story.work.replicas, story.work.replicas == 1 ? "" : "s");
  text += fmt::format("Global batch: {}\n", story.global_batch);
  for (const std::string& group : story.groups) text += fmt::format("group {}\n", group);
  text += "\n" + rank_table(story) + "\n";
  int number = 0;
  for (const StepPhase& phase : story.phases) {
    text += fmt::format("{}. {}: {}\n   {}waits for {}\n", ++number, phase.name, phase.what,
                        phase.group.empty() ? "" : fmt::format("group {}; ", phase.group), phase.waits_for);
  }
  text += "\n" + picture_text(draw_step(story)) + "\n" + price_words(story) + "\n";
  text += "When something goes wrong\n\n";
  for (const StepEvent& event : story.events) text += fmt::format("{} {}\n", event.name, event.what);
  text += "\n" + card_text(story.card);
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
               {"global_batch", {{"samples", story.samples}, {"words", story.global_batch}}},
               {"parameters", known(story.parameters)},
               {"gradient_bytes", known(story.gradient_bytes)},
               {"buckets", known(static_cast<std::int64_t>(story.buckets.size()))},
               {"update", std::string(update_word(story.update))},
               {"groups", story.groups},
               {"shares", Json::array()},
               {"phases", Json::array()},
               {"exchanges", Json::array()},
               {"kept_sums", {{"most", most_kept(story)}, {"bound", kept_bound(story)}}},
               {"aligned_splits", nullptr},
               {"events", Json::array()},
               {"card", to_json(story.card)},
               {"picture", to_json(draw_step(story))}};
  for (std::size_t rank = 0; rank < story.work.ranks.size(); ++rank) {
    const RankShare& share = story.work.ranks[rank];
    json["shares"].push_back({{"rank", rank},
                              {"host", share.host},
                              {"replicas", {share.replicas.begin, share.replicas.end}},
                              {"samples", share.samples},
                              {"samples_of_step", {share.first_sample, share.first_sample + share.samples}},
                              {"micro_batch", {share.least_in_micro_batch, share.most_in_micro_batch}},
                              {"partial_sums", share.partials},
                              {"kept_sums", share.kept_sums},
                              {"sent_bytes", known(share.sent_bytes)},
                              {"updated_parameters", known(share.updated)}});
  }
  for (const StepPhase& phase : story.phases) {
    json["phases"].push_back({{"name", phase.name},
                              {"what", phase.what},
                              {"group", phase.group.empty() ? Json(nullptr) : Json(phase.group)},
                              {"waits_for", phase.waits_for}});
  }
  for (const ExchangePrice& price : story.prices) json["exchanges"].push_back(price_json(story, price));
  if (story.aligned.looked_at > 0) {
    json["aligned_splits"] = {{"aligned", is_aligned(story)},
                              {"equal_work", story.aligned.even},
                              {"unequal_work", story.aligned.uneven},
                              {"looked_at", story.aligned.looked_at}};
  }
  for (const StepEvent& event : story.events) json["events"].push_back({{"name", event.name}, {"what", event.what}});
  return json;
}

}  // namespace convoy::spec

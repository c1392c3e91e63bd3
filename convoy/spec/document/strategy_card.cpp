#include "convoy/spec/document/strategy_card.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

// What both forms of data parallel training have in common.
constexpr std::string_view kDataWallTime =
    "yes, as long as a rank's part of the batch takes longer than what of the exchange cannot be hidden under "
    "backward; "
    "the slowest rank sets the pace";
constexpr std::string_view kDataConsistency =
    "synchronous: every gradient is computed from the parameters of the last step, over the whole global batch; with "
    "replicas the bits are the same on any number of ranks, with replicas.mode \"off\" they depend on N";
constexpr std::string_view kDataQuality =
    "as many samples and steps as one process with the same replicas, so the same quality; N devices are paid for the "
    "whole run, so the price grows by 1 / efficiency (convoy run --baselines measures it). A larger global batch is "
    "another recipe, and may need more samples";

constexpr StrategyCard kCards[] = {
    {
        .strategy = "data",
        .form = kWholeUpdate,
        .memory =
            "no: each rank has all parameters, the summed gradient and all moments; what shrinks with its part of the "
            "batch is activations",
        .compute = "forward and backward are divided by replicas; the optimizer's step is repeated on every rank",
        .wall_time = kDataWallTime,
        .bytes =
            "2 (N - 1) / N gradients with aligned splits, which is nearly the same for any N; with p partial sums on a "
            "rank p (N - 1) / N + (N - 1) / N",
        .consistency = kDataConsistency,
        .quality = kDataQuality,
        .recovery =
            "the newest checkpoint, on any number of ranks up to that of the replicas; steps since then are redone",
    },
    {
        .strategy = "data",
        .form = kDividedUpdate,
        .memory =
            "on a host, yes: its ranks have parameters and moments once, in equal shares; also the summed gradient "
            "where all ranks are on one host. Partial sums and activations stay with each rank",
        .compute = "forward and backward are divided by replicas, the optimizer's step among the ranks of a host",
        .wall_time = kDataWallTime,
        .bytes = "on one host (N - 1) / N gradients with aligned splits, p times that with p partial sums on a rank: "
                 "parameters need no all-gather. Over several hosts as much as with a whole update",
        .consistency = kDataConsistency,
        .quality = kDataQuality,
        .recovery =
            "the newest checkpoint, on any number of ranks up to that of the replicas; steps since then are redone. "
            "An update in which a rank is killed can be finished by the ranks of its host that are left",
    },
};

constexpr CardLine kLines[] = {
    {"relieves memory", "memory", &StrategyCard::memory},
    {"relieves compute", "compute", &StrategyCard::compute},
    {"relieves wall time", "wall_time", &StrategyCard::wall_time},
    {"bytes sent by a rank", "bytes", &StrategyCard::bytes},
    {"consistency", "consistency", &StrategyCard::consistency},
    {"same quality costs", "quality", &StrategyCard::quality},
    {"after a failure", "recovery", &StrategyCard::recovery},
};

std::string title_of(const StrategyCard& card) {
  return card.form.empty() ? std::string(card.strategy) : fmt::format("{}, {}", card.strategy, card.form);
}

}  // namespace

std::span<const StrategyCard> strategy_cards() { return kCards; }

std::span<const CardLine> card_lines() { return kLines; }

const StrategyCard& strategy_card(std::string_view strategy, std::string_view form) {
  for (const StrategyCard& card : kCards) {
    if (card.strategy == strategy && card.form == form) return card;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("there is no card of strategy '{}' in the form '{}'", strategy, form));
}

std::string card_text(const StrategyCard& card) {
  std::string text = fmt::format("Strategy: {}\n", title_of(card));
  for (const CardLine& line : kLines) text += fmt::format("  {}: {}\n", line.name, card.*line.answer);
  return text;
}

std::string card_markdown(const StrategyCard& card) {
  std::string text = fmt::format("### {}\n\n| question | answer |\n|---|---|\n", title_of(card));
  for (const CardLine& line : kLines) text += fmt::format("| {} | {} |\n", line.name, card.*line.answer);
  return text;
}

nlohmann::ordered_json to_json(const StrategyCard& card) {
  nlohmann::ordered_json json = {{"strategy", std::string(card.strategy)}, {"form", std::string(card.form)}};
  for (const CardLine& line : kLines) json[std::string(line.key)] = std::string(card.*line.answer);
  return json;
}

}  // namespace convoy::spec

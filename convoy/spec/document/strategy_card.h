// The card of each strategy: what it is good for and what it asks, said once for commands and documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace convoy::spec {

/// What a strategy does and what it asks. N is the number of ranks.
struct StrategyCard {
  /// The strategy, as `parallel.strategy` names it.
  std::string_view strategy;
  /// Which form of it; empty where there is one form only.
  std::string_view form;
  /// Whether it relieves memory, and whose.
  std::string_view memory;
  /// Whether it relieves compute: what is divided, and what every rank repeats.
  std::string_view compute;
  /// Whether it relieves wall time, and up to which point.
  std::string_view wall_time;
  /// How the bytes that a rank sends in a step grow with N.
  std::string_view bytes;
  /// From which parameters a gradient is computed, and on what results depend.
  std::string_view consistency;
  /// What the same quality costs in samples and money.
  std::string_view quality;
  /// From which state a run goes on after a failure.
  std::string_view recovery;
};

/// One question that a card answers.
struct CardLine {
  /// The question in a word or two; and as a key of JSON.
  std::string_view name, key;
  /// Where the answer is.
  std::string_view StrategyCard::*answer;
};

/// The form of "data" in which each rank updates all parameters of its own.
inline constexpr std::string_view kWholeUpdate = "whole update";
/// The form of "data" in which the ranks of a host update each a share of parameters that they have together.
inline constexpr std::string_view kDividedUpdate = "divided update";

/// Returns the cards of all strategies.
std::span<const StrategyCard> strategy_cards();

/// Returns the questions, in the order in which they are printed.
std::span<const CardLine> card_lines();

/// Returns the card of a strategy in one of its forms.
/// Errors:     kInvalidArgument naming strategy and form when there is no such card
const StrategyCard& strategy_card(std::string_view strategy, std::string_view form);

/// Returns a card for a terminal: its name, then a line for each question.
std::string card_text(const StrategyCard& card);

/// Returns a card as a Markdown table under a heading.
std::string card_markdown(const StrategyCard& card);

/// Returns {strategy, form, memory, compute, wall_time, bytes, consistency, quality, recovery}.
nlohmann::ordered_json to_json(const StrategyCard& card);

}  // namespace convoy::spec

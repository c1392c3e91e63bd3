// The rules by which a failed job names one rank.
#include "convoy/elastic/launcher/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/elastic/launcher/signal_trap.h"

namespace convoy::elastic {
namespace {

constexpr int kLostRank = 3;

// Returns the candidate with the lowest order, -1 when there is none. `order_of` gives nothing for who is no candidate.
template <typename OrderOf>
int earliest(const std::vector<RankOutcome>& ranks, OrderOf order_of) {
  int found = -1;
  std::uint64_t lowest = 0;
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
    const std::optional<std::uint64_t> order = order_of(ranks[static_cast<std::size_t>(rank)]);
    if (!order || (found >= 0 && *order >= lowest)) continue;
    found = rank;
    lowest = *order;
  }
  return found;
}

using Order = std::optional<std::uint64_t>;

int status_of(const RankOutcome& rank) {
  if (rank.signal) return kLostRank;
  const int status = rank.status.value_or(1);
  return status >= 1 && status <= 4 ? status : 1;
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The step in which the rank ended, as far as it is known: of the rank itself, else of any (they go in step).
std::string in_step(const LaunchResult& result, const RankOutcome& culprit) {
  std::int64_t step = culprit.last_step;
  if (step < 0) {
    for (const RankOutcome& rank : result.ranks) step = std::max(step, rank.last_step);
  }
  return step < 0 ? "" : fmt::format(" in step {}", step);
}

std::string describe_failure(const LaunchResult& result) {
  const RankOutcome& rank = result.ranks[static_cast<std::size_t>(result.culprit)];
  const char* others = result.ranks.size() > 1 ? "; the other ranks were stopped" : "";
  if (rank.signal) {
    return fmt::format("rank {} was ended by {}{}{}", result.culprit, describe_signal(*rank.signal),
                       in_step(result, rank), others);
  }
  const std::string ending = fmt::format("rank {} ended with status {}", result.culprit, rank.status.value_or(-1));
  if (rank.error) return fmt::format("{}: {}", ending, one_line(rank.error->message));
  return ending + others;
}

}  // namespace

int find_culprit(const std::vector<RankOutcome>& ranks) {
  int culprit = earliest(ranks, [](const RankOutcome& rank) -> Order {
    return rank.signal && !rank.stopped ? Order(rank.order) : std::nullopt;
  });
  if (culprit >= 0) return culprit;
  culprit = earliest(ranks, [](const RankOutcome& rank) -> Order {
    return !rank.ok() && rank.error && rank.error->code != "Aborted" ? Order(rank.error->order) : std::nullopt;
  });
  if (culprit >= 0) return culprit;
  return earliest(ranks, [](const RankOutcome& rank) { return rank.ok() ? std::nullopt : Order(rank.order); });
}

void judge(LaunchResult& result) {
  result.culprit = find_culprit(result.ranks);
  if (result.interrupted_by != 0) {
    result.culprit = -1;
    result.status = 128 + result.interrupted_by;
    result.message = fmt::format("interrupted by {}: all ranks were stopped", describe_signal(result.interrupted_by));
  } else if (result.culprit >= 0) {
    result.status = status_of(result.ranks[static_cast<std::size_t>(result.culprit)]);
    result.message = describe_failure(result);
  }
}

std::string to_json(const LaunchResult& result) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < result.ranks.size(); ++i) {
    const RankOutcome& rank = result.ranks[i];
    Json entry = {{"rank", i}};
    if (rank.status) entry["status"] = *rank.status;
    if (rank.signal) entry["signal"] = *rank.signal;
    entry["stopped"] = rank.stopped;
    if (rank.error) entry["error"] = {{"code", rank.error->code}, {"message", rank.error->message}};
    ranks.push_back(std::move(entry));
  }
  Json object = {{"ok", result.ok()}, {"status", result.status}};
  if (!result.message.empty()) object["message"] = result.message;
  if (result.culprit >= 0) object["culprit"] = result.culprit;
  object["elapsed_s"] = to_seconds(result.elapsed);
  object["ranks"] = std::move(ranks);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convoy::elastic

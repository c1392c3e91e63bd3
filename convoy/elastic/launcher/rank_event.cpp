// Events of ranks, read.
#include "convoy/elastic/launcher/rank_event.h"

#include <nlohmann/json.hpp>

namespace convoy::elastic {
namespace {

using Json = nlohmann::json;

template <typename Number>
void take_number(const Json& object, const char* key, Number& value) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_number()) value = found->get<Number>();
}

void take_text(const Json& object, const char* key, std::string& value) {
  const auto found = object.find(key);
  if (found != object.end() && found->is_string()) value = found->get<std::string>();
}

}  // namespace

std::optional<RankEvent> parse_rank_event(std::string_view line) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  std::string kind;
  take_text(object, "event", kind);
  RankEvent event;
  if (kind == "progress") {
    event.kind = RankEventKind::kProgress;
    take_number(object, "step", event.step);
    take_number(object, "steps", event.steps);
    take_number(object, "epoch", event.epoch);
    take_number(object, "loss", event.loss);
    take_number(object, "samples_per_s", event.samples_per_s);
  } else if (kind == "phase") {
    event.kind = RankEventKind::kPhase;
    take_text(object, "name", event.text);
  } else if (kind == "note") {
    event.kind = RankEventKind::kNote;
    take_text(object, "text", event.text);
  } else if (kind == "error") {
    event.kind = RankEventKind::kError;
    take_text(object, "code", event.code);
    take_text(object, "message", event.text);
  } else if (kind == "summary") {
    event.kind = RankEventKind::kSummary;
  } else {
    return std::nullopt;
  }
  return event;
}

}  // namespace convoy::elastic

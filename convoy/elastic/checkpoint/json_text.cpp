// Parses and writes the JSON of checkpoints.
#include "convoy/elastic/checkpoint/json_text.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::elastic {

std::string shorten(std::string text) {
  constexpr std::size_t kMost = 160;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::string shown(const nlohmann::json& value) {
  return value.is_primitive() ? shorten(value.dump(-1, ' ', true))
                              : std::string("a value of type ") + value.type_name();
}

nlohmann::json parse_object(const std::string& path, const std::string& text) {
  // Readers would differ in which of two equal keys they believe.
  std::vector<std::set<std::string>> keys;
  const auto refuse_doubles = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::object_start) keys.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) keys.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: the key {} stands twice", path, shown(value)));
    }
    return true;
  };
  try {
    nlohmann::json object = nlohmann::json::parse(text, refuse_doubles);
    if (!object.is_object()) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: it holds {}, no object", path, shown(object)));
    }
    return object;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged: {}", path, shorten(error.what())));
  }
}

std::string dump_json(const std::string& path, const nlohmann::ordered_json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a name or text is no UTF-8 ({})", path, shorten(error.what())));
  }
}

}  // namespace convoy::elastic

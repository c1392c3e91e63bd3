// Whether a text is a Chrome trace as viewers take it: the rules of the format's description, not of our own writer.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace convoy::testing {

/// Returns what is wrong with a Chrome trace in the object form; empty when it is valid. Checks the fields of each event
/// by its phase, that complete events of a thread nest, and that asynchronous ones begin and end in pairs.
inline std::vector<std::string> chrome_trace_problems(const std::string& text) {
  using nlohmann::json;
  std::vector<std::string> problems;
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded()) return {"no JSON"};
  if (!file.is_object() || !file.contains("traceEvents") || !file["traceEvents"].is_array()) return {"no traceEvents"};
  using Key = std::pair<int, int>;
  std::map<Key, std::vector<std::pair<double, double>>> complete;
  std::map<std::tuple<std::string, std::string, int>, std::vector<std::pair<double, std::string>>> asynchronous;
  std::size_t number = 0;
  for (const json& event : file["traceEvents"]) {
    const std::string where = "event " + std::to_string(number++);
    const auto wrong = [&](const std::string& what) { problems.push_back(where + ": " + what); };
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string()) {
      wrong("no phase");
      continue;
    }
    for (const char* key : {"pid", "tid"}) {
      if (!event.contains(key) || !event[key].is_number_integer()) wrong(std::string("no whole number ") + key);
    }
    if (!event.contains("name") || !event["name"].is_string()) wrong("no name");
    if (event.contains("args") && !event["args"].is_object()) wrong("args is no object");
    if (!problems.empty() && problems.back().starts_with(where)) continue;
    const auto phase = event["ph"].get<std::string>();
    if (phase == "M") {
      if (!event.contains("args") || event["args"].size() != 1) wrong("metadata without its one argument");
      continue;
    }
    if (!event.contains("ts") || !event["ts"].is_number()) {
      wrong("no time");
      continue;
    }
    const double at = event["ts"].get<double>();
    if (phase == "X") {
      if (!event.contains("dur") || !event["dur"].is_number() || event["dur"].get<double>() < 0) {
        wrong("no duration");
        continue;
      }
      complete[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(at, at + event["dur"].get<double>());
    } else if (phase == "b" || phase == "n" || phase == "e") {
      if (!event.contains("id") || !event.contains("cat")) {
        wrong("an asynchronous event without id or category");
        continue;
      }
      asynchronous[{event["cat"].get<std::string>(), event["id"].get<std::string>(), event["pid"].get<int>()}]
          .emplace_back(at, phase);
    } else {
      wrong("unknown phase " + phase);
    }
  }
  for (auto& [thread, spans] : complete) {
    std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    constexpr double kRounding = 0.0005;  // times have three decimals
    std::vector<double> open;
    for (const auto& [begin, end] : spans) {
      while (!open.empty() && open.back() <= begin + kRounding) open.pop_back();
      if (!open.empty() && end > open.back() + kRounding) {
        problems.push_back("process " + std::to_string(thread.first) + " thread " + std::to_string(thread.second) +
                           ": events overlap without nesting at " + std::to_string(begin));
      }
      open.push_back(end);
    }
  }
  for (const auto& [key, moments] : asynchronous) {
    const bool paired =
        moments.size() >= 2 && moments.front().second == "b" && moments.back().second == "e" &&
        std::is_sorted(moments.begin(), moments.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!paired) problems.push_back("asynchronous event " + std::get<1>(key) + " does not begin and end in order");
  }
  return problems;
}

}  // namespace convoy::testing

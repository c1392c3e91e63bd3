// JSON as checkpoints hold it: parsed without trust, every problem an error that names the file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::elastic {

/// Returns the text, cut where it is too long for a message.
std::string shorten(std::string text);

/// Returns a value for a message; of lists and objects only the kind, since they may be nested without limit.
std::string shown(const nlohmann::json& value);

/// Parses a text that must be one JSON object in which no key stands twice.
/// Errors:     kCorrupt naming the file
nlohmann::json parse_object(const std::string& path, const std::string& text);

/// Returns the value as compact JSON.
/// Errors:     kInvalidArgument naming the file when a name or text is no UTF-8
std::string dump_json(const std::string& path, const nlohmann::ordered_json& value);

}  // namespace convoy::elastic

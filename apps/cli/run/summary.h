// summary.json, read and shown.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace convoy::cli {

/// Keys in the order of the file.
using Json = nlohmann::ordered_json;

/// Returns the summary of a run directory.
/// Errors:     kCorrupt naming the file when it is missing or is not a JSON object
Json read_summary(const std::string& directory);

/// Returns a number of a summary by its path ("/step_ms/median"), or nothing where it is missing or of another type.
std::optional<double> summary_number(const Json& summary, const std::string& path);

/// Returns the tables that a user sees after a run. What the summary lacks is shown as "-".
std::string summary_tables(const Json& summary);

}  // namespace convoy::cli

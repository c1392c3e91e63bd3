// The training plan as a page: what a recipe declares, what follows from it, and what is still open.
//
// Words: a *line* says one thing. A line whose recipe key is left empty is *open*: the page names the key that would
// declare it. What the program decides by itself is said as it is and is never open.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/spec/recipe.h"

namespace convoy::spec {

/// Sizes of the parts of the data.
struct PlanSizes {
  /// How many samples each has.
  std::int64_t training = 0, validation = 0, test = 0;
};

/// What an earlier run measured.
struct PlanBaseline {
  /// Its run directory.
  std::string directory;
  /// How many ranks it had.
  int ranks = 0;
  /// Whether its recipe would give another result than this one.
  bool other_settings = false;
  /// Its median step in milliseconds, and samples per second; nothing where it did not say.
  std::optional<double> step_ms, samples_per_s;
  /// The bytes of its parameters.
  std::optional<std::int64_t> parameter_bytes;
  /// Its quality by name, such as accuracy.
  std::vector<std::pair<std::string, double>> quality;
};

/// What is known beside the recipe.
struct PlanFacts {
  /// The recipe's path, for the title; may be empty.
  std::string recipe_file;
  /// How many ranks; 0 when not chosen: results do not depend on it.
  int ranks = 0;
  /// The sizes of the parts, where the data were looked at.
  std::optional<PlanSizes> sizes;
  /// Why the data could not be looked at; empty when nobody tried.
  std::string data_problem;
  /// An earlier run.
  std::optional<PlanBaseline> baseline;
};

/// One thing that the plan says.
struct PlanLine {
  /// What it is about.
  std::string what;
  /// What is said; empty when it is open.
  std::string text;
  /// The recipe key that would declare it, as "table.key"; empty when none could.
  std::string key;
  /// Returns whether it is open.
  bool open() const { return text.empty() && !key.empty(); }
};

/// One part of the plan.
struct PlanSection {
  /// Its heading.
  std::string title;
  /// What it says.
  std::vector<PlanLine> lines;
  /// A table below the lines: heads first, then rows; may be empty.
  std::vector<std::vector<std::string>> table;
};

/// A training plan.
struct PlanDocument {
  /// The run's name.
  std::string name;
  /// The recipe's path; may be empty.
  std::string recipe_file;
  /// Its parts in order.
  std::vector<PlanSection> sections;
  /// Returns the lines that are open, in order.
  std::vector<PlanLine> open() const;
};

/// Makes the plan of a recipe.
/// Errors:     kInvalidArgument when there are more ranks than replicas
PlanDocument make_plan_document(const Recipe& recipe, const PlanFacts& facts = {});

/// Returns the plan as a Markdown page.
std::string to_markdown(const PlanDocument& plan);

/// Returns whether a text is a page of to_markdown, by its first line.
bool is_plan_page(std::string_view text);

/// Returns {name, recipe, sections: [{title, lines: [{what, text, key}], table}], open: [{section, what, key}]}.
nlohmann::ordered_json to_json(const PlanDocument& plan);

}  // namespace convoy::spec

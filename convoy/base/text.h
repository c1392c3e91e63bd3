// Small texts for people: sizes, durations, tables, and the word that somebody probably meant.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/clock.h"

namespace convoy {

/// Returns a size with a binary unit, for example "1.5 MiB".
std::string format_bytes(std::uint64_t bytes);

/// Returns a duration with a fitting unit, for example "12.3 ms" or "4 min 05 s".
std::string format_duration(Duration duration);

/// Returns the candidate nearest to the word by edit distance, or nothing when none is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// Returns " (did you mean 'x'?)" for the nearest candidate, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// A table of texts with aligned columns: the first column to the left, all others to the right.
class TextTable {
 public:
  /// Starts a table with these column heads.
  explicit TextTable(std::vector<std::string> heads) : rows_{std::move(heads)} {}
  /// Adds a row; missing cells are empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Returns the table, a line under the heads, each line ended by a line break.
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace convoy

// What a recipe declares about one column of a table file: `age = "number, missing = mean"`.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace convoy::spec {

/// What a column is used for.
enum class ColumnKind { kNumber, kCategory, kTarget, kGroup, kTime, kExcluded };

/// A column's declaration.
struct DataColumn {
  /// What it is used for.
  ColumnKind kind = ColumnKind::kNumber;
  /// Why it is excluded.
  std::string reason;
  /// Number: a missing value becomes the training part's mean, and one more feature says so. Category: a missing value
  /// is a category of its own. Otherwise a missing value is an error.
  bool missing_allowed = false;
  /// Category: a value that the training part lacks belongs to none of its categories. Otherwise it is an error.
  bool unseen_allowed = false;
  friend bool operator==(const DataColumn&, const DataColumn&) = default;
};

/// Reads a column's declaration.
/// Errors:     kInvalidArgument saying what is wrong with it and what it may be
DataColumn parse_data_column(std::string_view text);

/// Returns what is wrong with the declaration of the column of this name, or "".
std::string data_column_error(const std::string& name, const std::string& text);

/// Returns how many of the declared columns are of a kind; declarations that cannot be read do not count.
int count_columns(const std::map<std::string, std::string>& columns, ColumnKind kind);

}  // namespace convoy::spec

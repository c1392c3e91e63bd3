// A CSV file bound to the columns that a recipe declares, and the values that its fields have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/records/table/csv.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/recipe/data_column.h"

namespace convoy::records {

/// What a recipe declares about a table.
class TableSchema {
 public:
  /// Reads the declarations of [data].
  /// Errors:     kInvalidArgument when a declaration cannot be read, or there is not exactly one target
  explicit TableSchema(const spec::DataRecipe& recipe);

  /// Returns how each column of a file is used, in the file's order.
  /// Errors:     kInvalidArgument naming the file, and the column that is declared and not there or there and not
  ///             declared, with the nearest name
  std::vector<spec::DataColumn> bind(const CsvTable& table) const;
  /// Returns whether a field stands for a missing value.
  bool is_missing(std::string_view field) const;
  /// Returns what stands between two fields.
  char delimiter() const { return delimiter_; }

 private:
  std::map<std::string, spec::DataColumn> columns_;
  std::vector<std::string> missing_;
  char delimiter_;
};

/// Returns the column of a kind, if there is one.
std::optional<std::size_t> find_kind(const std::vector<spec::DataColumn>& columns, spec::ColumnKind kind);

/// Returns the number that a text holds, spaces around it left out; nothing for anything else, and for numbers that are
/// not finite.
std::optional<double> to_number(std::string_view field);

/// Returns the number in a field.
/// Errors:     kInvalidArgument naming file, line and column for anything else; numbers that are not finite too
double number_at(const CsvTable& table, std::int64_t row, std::size_t column);

/// Returns the times in a column, in seconds or in its own unit: all are numbers, or all are YYYY-MM-DD, maybe with
/// HH:MM or HH:MM:SS after a space or a T.
/// Errors:     kInvalidArgument naming file, line and column of the first that is neither
std::vector<double> times_of(const CsvTable& table, std::size_t column);

/// Throws kInvalidArgument with a message that quotes files: made one line, whatever they hold.
[[noreturn]] void refuse_table(const std::string& message);

/// Returns a field's place and text for messages: "bank.csv line 12, column 'age': 'x'".
std::string place_of(const CsvTable& table, std::int64_t row, std::size_t column);

}  // namespace convoy::records

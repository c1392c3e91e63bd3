// Binds declared columns to a file's header and reads numbers and times.
#include "convoy/records/table/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::records {
namespace {

[[noreturn]] void refuse(const std::string& message) { refuse_table(message); }

std::string shown(std::string_view text) { return spec::one_line(text, 80); }

std::string hint(const std::string& word, const std::vector<std::string>& candidates) {
  return word.size() > 64 ? "" : did_you_mean(word, candidates);
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Reads exactly `digits` digits and takes them off the text.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return number;
}

bool take_char(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// Days since 1970-01-01 in the Gregorian calendar, by counting from March so that the leap day comes last.
std::int64_t days_of(int year, int month, int day) {
  const std::int64_t y = year - (month <= 2 ? 1 : 0);
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

bool is_day(int year, int month, int day) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

// Returns the seconds of HH:MM or HH:MM:SS.
std::optional<double> to_time_of_day(std::string_view text) {
  const auto hour = take_digits(text, 2);
  if (!hour || !take_char(text, ':')) return std::nullopt;
  const auto minute = take_digits(text, 2);
  std::optional<int> second = 0;
  if (minute && take_char(text, ':')) second = take_digits(text, 2);
  if (!minute || !second || !text.empty() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  return *hour * 3600.0 + *minute * 60.0 + *second;
}

std::optional<double> to_date(std::string_view field) {
  std::string_view text = trimmed(field);
  const auto year = take_digits(text, 4);
  if (!year || !take_char(text, '-')) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take_char(text, '-')) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day || !is_day(*year, *month, *day)) return std::nullopt;
  const double seconds = static_cast<double>(days_of(*year, *month, *day)) * 86400.0;
  if (text.empty()) return seconds;
  if (!take_char(text, ' ') && !take_char(text, 'T')) return std::nullopt;
  const auto of_day = to_time_of_day(text);
  return of_day ? std::optional(seconds + *of_day) : std::nullopt;
}

}  // namespace

void refuse_table(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, spec::one_line(message, 2000));
}

std::optional<double> to_number(std::string_view field) {
  std::string_view text = trimmed(field);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double number = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

TableSchema::TableSchema(const spec::DataRecipe& recipe)
    : missing_(recipe.missing), delimiter_(recipe.delimiter.at(0)) {
  for (const auto& [name, text] : recipe.columns) {
    const std::string wrong = spec::data_column_error(name, text);
    if (!wrong.empty()) refuse(fmt::format("data.columns.{}: {}", shown(name), wrong));
    columns_[name] = spec::parse_data_column(text);
  }
  if (spec::count_columns(recipe.columns, spec::ColumnKind::kTarget) != 1) {
    refuse("data.columns: exactly one column must be the target");
  }
}

std::vector<spec::DataColumn> TableSchema::bind(const CsvTable& table) const {
  std::vector<std::string> declared;
  for (const auto& [name, column] : columns_) declared.push_back(name);
  for (const std::string& name : declared) {
    if (std::find(table.names().begin(), table.names().end(), name) != table.names().end()) continue;
    refuse(fmt::format("{} has no column '{}', which data.columns declares{}", table.name(), shown(name),
                       hint(name, table.names())));
  }
  std::vector<spec::DataColumn> bound;
  for (const std::string& name : table.names()) {
    const auto column = columns_.find(name);
    if (column == columns_.end()) {
      refuse(
          fmt::format("{}: data.columns does not declare the column '{}'; write \"excluded: REASON\" to leave it out",
                      table.name(), shown(name)));
    }
    bound.push_back(column->second);
  }
  return bound;
}

bool TableSchema::is_missing(std::string_view field) const {
  return std::find(missing_.begin(), missing_.end(), field) != missing_.end();
}

std::optional<std::size_t> find_kind(const std::vector<spec::DataColumn>& columns, spec::ColumnKind kind) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].kind == kind) return i;
  }
  return std::nullopt;
}

double number_at(const CsvTable& table, std::int64_t row, std::size_t column) {
  const auto number = to_number(table.field(row, column));
  if (!number) refuse(place_of(table, row, column) + " is no number");
  return *number;
}

std::vector<double> times_of(const CsvTable& table, std::size_t column) {
  std::vector<double> times;
  if (table.rows() == 0) return times;
  const bool numbers = to_number(table.field(0, column)).has_value();
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    const auto time = numbers ? to_number(table.field(row, column)) : to_date(table.field(row, column));
    if (!time) {
      refuse(place_of(table, row, column) +
             (numbers ? " is no number, as the times above are" : " is no time: a number, or YYYY-MM-DD [HH:MM[:SS]]"));
    }
    times.push_back(*time);
  }
  return times;
}

std::string place_of(const CsvTable& table, std::int64_t row, std::size_t column) {
  return fmt::format("{} line {}, column '{}': '{}'", table.name(), table.line_of(row), shown(table.names()[column]),
                     shown(table.field(row, column)));
}

}  // namespace convoy::records

// CSV files: fields, quotes and line ends as RFC 4180 has them and as files in the wild have them.
//
// A record ends at LF, CR LF or CR; the last may do without. A line without any character is no record. A field that
// begins with a quote ends at the next single one: inside, delimiters and line ends are text and "" is one quote. A quote
// later in a field is text. A UTF-8 byte-order mark at the beginning of a record is left out, wherever it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::records {

/// A table of texts with a header.
class CsvTable {
 public:
  /// Returns the names of the columns.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the number of rows below the header.
  std::int64_t rows() const { return static_cast<std::int64_t>(lines_.size()); }
  /// Returns a field; valid while the table lives.
  std::string_view field(std::int64_t row, std::size_t column) const;
  /// Returns the line of the file that a row begins in, counted from 1.
  std::int64_t line_of(std::int64_t row) const { return lines_[static_cast<std::size_t>(row)]; }
  /// Returns the file's name in messages.
  const std::string& name() const { return name_; }

 private:
  friend CsvTable parse_csv(std::string_view text, const std::string& name, char delimiter);

  std::string name_;
  std::vector<std::string> names_;
  std::string texts_;              // all fields one after the other
  std::vector<std::size_t> ends_;  // where each of them ends
  std::vector<std::int64_t> lines_;
};

/// Reads a table that lies in memory; `name` stands for the file in messages.
/// Errors:     kInvalidArgument naming file and line: no header, a column without a name or with another's, a row with
///             more or fewer fields than the header, a quoted field that goes on after its quote or never ends
CsvTable parse_csv(std::string_view text, const std::string& name, char delimiter);

/// Returns a field as a CSV file holds it: in quotes where it needs them, or where `always` asks for them.
std::string csv_field(std::string_view text, char delimiter, bool always = false);

}  // namespace convoy::records

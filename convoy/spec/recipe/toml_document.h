// A TOML text as a flat list of entries. Only the source file behind this header knows the TOML library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace convoy::spec {

/// A value of a kind that no recipe key takes.
struct TomlOther {
  /// What it is, for messages: "a date", "a list that holds neither integers only nor texts only".
  std::string what;
};

/// One entry of a table that holds texts only.
struct TomlText {
  /// Its name.
  std::string name;
  /// Its text.
  std::string text;
  /// The line, counted from 1.
  int line = 0;
};

/// A value in a TOML text; an empty list is one of integers.
using TomlValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<std::string>, std::vector<TomlText>, TomlOther>;

/// One key with its value, or the beginning of a table.
struct TomlEntry {
  /// The table; "" for keys outside any table.
  std::string table;
  /// The key; meaningless where a table begins.
  std::string key;
  /// Whether this is the place where `table` begins, and not a key.
  bool begins_table = false;
  /// The value.
  TomlValue value;
  /// The line, counted from 1.
  int line = 0;
};

/// Reads a TOML text into its entries, in the order of their lines; `name` stands for the file in messages.
/// Errors:     kInvalidArgument, "NAME:LINE: what is wrong", for text that is not UTF-8 or not TOML, a key or table
///             that is given twice, or text beyond what a recipe can need (64 KiB, 64 dots in a line)
std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& name);

/// Returns the length of the longest beginning of the text that is valid UTF-8.
std::size_t utf8_prefix(std::string_view text);

/// Returns a text fit for one line of a message: control characters and broken UTF-8 become '?', and a long text is
/// cut.
std::string one_line(std::string_view text, std::size_t longest = 400);

/// Returns a text as a TOML basic string, in quotes.
/// Errors:     kInvalidArgument when it is not UTF-8
std::string toml_quoted(std::string_view text);

}  // namespace convoy::spec

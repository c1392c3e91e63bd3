// Reads the declarations of columns.
#include "convoy/spec/recipe/data_column.h"

#include <fmt/format.h>

#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::spec {
namespace {

const std::vector<std::string> kKinds = {"number", "category", "target", "group", "time", "excluded"};

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

ColumnKind parse_kind(std::string_view word) {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (word == kKinds[i]) return static_cast<ColumnKind>(i);
  }
  refuse(fmt::format("a column is \"{}\" or \"excluded: REASON\", not \"{}\"{}",
                     fmt::join(kKinds.begin(), kKinds.end() - 1, "\", \""), one_line(word, 80),
                     word.size() > 64 ? "" : did_you_mean(word, kKinds)));
}

void parse_option(std::string_view option, DataColumn& column) {
  const auto equals = option.find('=');
  const std::string_view name = trimmed(option.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? "" : trimmed(option.substr(equals + 1));
  if (column.kind == ColumnKind::kNumber && name == "missing" && value == "mean") {
    column.missing_allowed = true;
  } else if (column.kind == ColumnKind::kCategory && name == "missing" && value == "own") {
    column.missing_allowed = true;
  } else if (column.kind == ColumnKind::kCategory && name == "unseen" && value == "own") {
    column.unseen_allowed = true;
  } else {
    const char* allowed = column.kind == ColumnKind::kNumber     ? "missing = mean"
                          : column.kind == ColumnKind::kCategory ? "missing = own, unseen = own"
                                                                 : "nothing";
    refuse(fmt::format("\"{}\" is no option of a column that is \"{}\", which takes {}", one_line(trimmed(option), 80),
                       kKinds[static_cast<std::size_t>(column.kind)], allowed));
  }
}

}  // namespace

DataColumn parse_data_column(std::string_view text) {
  DataColumn column;
  const std::string_view whole = trimmed(text);
  constexpr std::string_view kExcluded = "excluded";
  if (whole.substr(0, kExcluded.size()) == kExcluded) {
    const std::string_view rest = trimmed(whole.substr(kExcluded.size()));
    column.kind = ColumnKind::kExcluded;
    if (!rest.empty() && rest.front() == ':') column.reason = trimmed(rest.substr(1));
    if (column.reason.empty()) refuse("an excluded column needs its reason: \"excluded: REASON\"");
    return column;
  }
  const auto comma = whole.find(',');
  column.kind = parse_kind(trimmed(whole.substr(0, comma)));
  for (auto at = comma; at != std::string_view::npos;) {
    const auto next = whole.find(',', at + 1);
    parse_option(whole.substr(at + 1, next == std::string_view::npos ? next : next - at - 1), column);
    at = next;
  }
  return column;
}

std::string data_column_error(const std::string& name, const std::string& text) {
  if (name.empty()) return "a column needs a name";
  try {
    parse_data_column(text);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

int count_columns(const std::map<std::string, std::string>& columns, ColumnKind kind) {
  int count = 0;
  for (const auto& [name, text] : columns) {
    if (data_column_error(name, text).empty() && parse_data_column(text).kind == kind) ++count;
  }
  return count;
}

}  // namespace convoy::spec

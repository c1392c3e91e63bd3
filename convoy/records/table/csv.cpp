// Cuts a CSV text into fields, character by character.
#include "convoy/records/table/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::records {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

[[noreturn]] void refuse(const std::string& name, std::int64_t line, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} line {}: {}", name, line, what));
}

// Walks over a text, one record at a time.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& name, char delimiter)
      : text_(text), name_(name), delimiter_(delimiter) {}

  // Adds the fields of the next record to `texts` and their ends to `ends`; returns its line, or 0 after the last.
  std::int64_t next(std::string& texts, std::vector<std::size_t>& ends) {
    skip_marks_and_empty_lines();
    if (at_ == text_.size()) return 0;
    const std::int64_t began = line_;
    do {
      read_field(texts);
      ends.push_back(texts.size());
    } while (take(delimiter_));
    end_line();
    return began;
  }

 private:
  bool at_line_end() const { return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r'; }

  bool take(char expected) {
    if (at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }

  void end_line() {
    if (at_ == text_.size()) return;
    const bool carriage_return = take('\r');
    const bool line_feed = take('\n');
    if (carriage_return || line_feed) ++line_;
  }

  void skip_marks_and_empty_lines() {
    for (;;) {
      while (text_.substr(at_, kByteOrderMark.size()) == kByteOrderMark) at_ += kByteOrderMark.size();
      if (at_ == text_.size() || !at_line_end()) return;
      end_line();
    }
  }

  void read_field(std::string& texts) {
    if (take('"')) {
      read_quoted(texts);
      return;
    }
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != delimiter_) ++at_;
    texts += text_.substr(begin, at_ - begin);
  }

  void read_quoted(std::string& texts) {
    const std::int64_t began = line_;
    for (;; ++at_) {
      if (at_ == text_.size()) refuse(name_, began, "a quoted field begins here and never ends");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '"') break;
      } else if (c == '\n' || (c == '\r' && text_.substr(at_ + 1, 1) != "\n")) {
        ++line_;
      }
      texts += c;
    }
    if (!at_line_end() && text_[at_] != delimiter_) {
      refuse(name_, line_, "a quoted field goes on after its closing quote (a quote inside is written twice)");
    }
  }

  const std::string_view text_;
  const std::string& name_;
  const char delimiter_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

void check_names(const std::vector<std::string>& names, const std::string& file, std::int64_t line) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front().empty()) {
    const auto column = std::find(names.begin(), names.end(), "") - names.begin();
    refuse(file, line, fmt::format("column {} has no name", column + 1));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    refuse(file, line, fmt::format("two columns are named '{}'", spec::one_line(*twice, 80)));
  }
}

}  // namespace

std::string_view CsvTable::field(std::int64_t row, std::size_t column) const {
  const std::size_t number = static_cast<std::size_t>(row) * names_.size() + column;
  const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
  return std::string_view(texts_).substr(begin, ends_[number] - begin);
}

CsvTable parse_csv(std::string_view text, const std::string& name, char delimiter) {
  CsvTable table;
  table.name_ = name;
  Scanner scanner(text, name, delimiter);
  std::string head;
  std::vector<std::size_t> head_ends;
  const std::int64_t head_line = scanner.next(head, head_ends);
  if (head_line == 0) refuse(name, 1, "there is no header: the file is empty");
  for (std::size_t i = 0; i < head_ends.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : head_ends[i - 1];
    table.names_.push_back(head.substr(begin, head_ends[i] - begin));
  }
  check_names(table.names_, name, head_line);
  table.texts_.reserve(text.size());
  for (;;) {
    const std::size_t before = table.ends_.size();
    const std::int64_t line = scanner.next(table.texts_, table.ends_);
    if (line == 0) break;
    const std::size_t fields = table.ends_.size() - before;
    if (fields != table.names_.size()) {
      refuse(name, line, fmt::format("{} fields, but the header names {} columns", fields, table.names_.size()));
    }
    table.lines_.push_back(line);
  }
  return table;
}

std::string csv_field(std::string_view text, char delimiter, bool always) {
  const bool special = text.find_first_of("\"\r\n") != std::string_view::npos ||
                       text.find(delimiter) != std::string_view::npos ||
                       text.substr(0, kByteOrderMark.size()) == kByteOrderMark;
  if (!special && !always) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace convoy::records

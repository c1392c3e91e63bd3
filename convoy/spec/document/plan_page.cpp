// Writes training plans: as a Markdown page and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/spec/document/plan_document.h"

namespace convoy::spec {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFirstWords = "# Training plan: ";

// A user's text as one paragraph of plain words: it must not end a list, a table or the page.
std::string plain(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') {
      safe += ' ';
    } else {
      if (c == '|' || c == '<' || c == '\\') safe += '\\';
      safe += c;
    }
  }
  return safe;
}

std::string open_words(const PlanLine& line) { return fmt::format("open: declare `{}`", line.key); }

std::string table_text(const std::vector<std::vector<std::string>>& table) {
  std::string text;
  for (std::size_t row = 0; row < table.size(); ++row) {
    for (const std::string& cell : table[row]) text += fmt::format("| {} ", plain(cell));
    text += "|\n";
    if (row > 0) continue;
    for (std::size_t column = 0; column < table.front().size(); ++column) text += "|---";
    text += "|\n";
  }
  return text;
}

}  // namespace

std::vector<PlanLine> PlanDocument::open() const {
  std::vector<PlanLine> all;
  for (const PlanSection& section : sections) {
    for (const PlanLine& line : section.lines) {
      if (line.open()) all.push_back(line);
    }
  }
  return all;
}

std::string to_markdown(const PlanDocument& plan) {
  std::string text = fmt::format("{}{}\n\n", kFirstWords, plain(plan.name));
  text += plan.recipe_file.empty()
              ? "Made from a recipe by `convoy explain --document`.\n"
              : fmt::format("Made from {} by `convoy explain --document`.\n", plain(plan.recipe_file));
  const std::vector<PlanLine> open = plan.open();
  text += "\n## Open\n\n";
  if (open.empty()) text += "Nothing.\n";
  for (const PlanLine& line : open) text += fmt::format("- {}: declare `{}`\n", plain(line.what), line.key);
  for (const PlanSection& section : plan.sections) {
    text += fmt::format("\n## {}\n\n", section.title);
    for (const PlanLine& line : section.lines) {
      text += fmt::format("- **{}**: {}\n", plain(line.what), line.open() ? open_words(line) : plain(line.text));
    }
    if (!section.table.empty()) text += (section.lines.empty() ? "" : "\n") + table_text(section.table);
  }
  return text;
}

bool is_plan_page(std::string_view text) { return text.substr(0, kFirstWords.size()) == kFirstWords; }

nlohmann::ordered_json to_json(const PlanDocument& plan) {
  Json json = {{"name", plan.name}, {"recipe", plan.recipe_file}, {"sections", Json::array()}, {"open", Json::array()}};
  for (const PlanSection& section : plan.sections) {
    Json part = {{"title", section.title}, {"lines", Json::array()}, {"table", section.table}};
    for (const PlanLine& line : section.lines) {
      part["lines"].push_back({{"what", line.what}, {"text", line.text}, {"key", line.key}});
      if (line.open()) json["open"].push_back({{"section", section.title}, {"what", line.what}, {"key", line.key}});
    }
    json["sections"].push_back(std::move(part));
  }
  return json;
}

}  // namespace convoy::spec

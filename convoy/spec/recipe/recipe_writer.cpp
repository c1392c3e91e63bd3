// Writes recipes, and everything that is said about them: TOML, the JSON schema, the reference page, the digest.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/spec/recipe/recipe_schema.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::spec {
namespace {

using Json = nlohmann::ordered_json;
using RecipeTexts = std::map<std::string, std::string>;

// Returns a key as TOML writes it: in quotes unless it is a plain word.
std::string toml_key(const std::string& name) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(kPlain) == std::string::npos ? name : toml_quoted(name);
}

struct WriteValue {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::to_string(value); }
  std::string operator()(double value) const {
    if (!std::isfinite(value))
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is not a finite number", value));
    std::string text = fmt::format("{}", value);  // the shortest text that reads back as the same number
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  std::string operator()(const std::string& value) const { return toml_quoted(value); }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(const std::vector<std::string>& value) const {
    std::vector<std::string> quoted;
    for (const std::string& text : value) quoted.push_back(toml_quoted(text));
    return fmt::format("[{}]", fmt::join(quoted, ", "));
  }
  std::string operator()(const RecipeTexts& value) const {
    std::vector<std::string> entries;
    for (const auto& [name, text] : value) entries.push_back(fmt::format("{} = {}", toml_key(name), toml_quoted(text)));
    return value.empty() ? "{}" : fmt::format("{{ {} }}", fmt::join(entries, ", "));
  }
};

struct JsonValue {
  template <typename T>
  Json operator()(const T& value) const {
    return Json(value);
  }
};

// Adds a limit to a schema, a whole one as an integer.
void add_limit(Json& schema, const char* name, double limit) {
  if (std::isinf(limit)) return;
  if (limit == std::trunc(limit)) {
    schema[name] = static_cast<std::int64_t>(limit);
  } else {
    schema[name] = limit;
  }
}

void add_limits(Json& schema, const RecipeLimits& limits) {
  add_limit(schema, limits.above ? "exclusiveMinimum" : "minimum", limits.least);
  add_limit(schema, limits.below ? "exclusiveMaximum" : "maximum", limits.most);
}

Json key_schema(const RecipeKey& key) {
  static constexpr const char* kTypes[] = {"boolean", "integer", "number", "string", "array", "array", "object"};
  const RecipeValue value = recipe_value(Recipe{}, key);
  Json schema;
  schema["description"] = key.doc;
  schema["type"] = kTypes[value.index()];
  schema["default"] = std::visit(JsonValue{}, value);
  if (!key.choices.empty()) schema["enum"] = key.choices;
  if (std::holds_alternative<std::string>(value)) {
    if (key.limits.least > 0) schema["minLength"] = static_cast<std::int64_t>(key.limits.least);
  } else if (std::holds_alternative<std::vector<std::int64_t>>(value)) {
    schema["minItems"] = 1;
    schema["maxItems"] = kMaxListLength;
    schema["items"]["type"] = "integer";
    add_limits(schema["items"], key.limits);
  } else if (std::holds_alternative<std::vector<std::string>>(value)) {
    schema["maxItems"] = kMaxListLength;
    schema["items"]["type"] = "string";
  } else if (std::holds_alternative<RecipeTexts>(value)) {
    schema["maxProperties"] = kMaxNames;
    schema["additionalProperties"]["type"] = "string";
  } else {
    add_limits(schema, key.limits);
  }
  return schema;
}

// Returns what a key takes, for the page.
std::string allowed_words(const RecipeKey& key, const RecipeValue& value) {
  std::string words;
  if (!key.choices.empty()) {
    for (const std::string& choice : key.choices) words += fmt::format("{}`\"{}\"`", words.empty() ? "" : ", ", choice);
    return words;
  }
  if (std::holds_alternative<bool>(value)) return "`true`, `false`";
  if (std::holds_alternative<std::string>(value))
    return key.limits.least > 0 ? "any text but an empty one" : "any text";
  if (std::holds_alternative<std::vector<std::int64_t>>(value)) {
    return fmt::format("1 to {} integers, each {}", kMaxListLength, key.limits.words());
  }
  if (std::holds_alternative<std::vector<std::string>>(value)) return fmt::format("up to {} texts", kMaxListLength);
  if (std::holds_alternative<RecipeTexts>(value)) return fmt::format("up to {} names with a text each", kMaxNames);
  return fmt::format("{}, {}", type_words(key), key.limits.words());
}

// A bar would end a cell of the page's tables, even inside of a code span.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string effect_words(RecipeEffect effect) {
  switch (effect) {
    case RecipeEffect::kResult: return "yes";
    case RecipeEffect::kLength: return "with a decaying schedule";
    case RecipeEffect::kSpeed: return "no";
  }
  return "";
}

std::string table_page(const RecipeTable& table) {
  std::string page = fmt::format("\n## `[{}]`: {}\n\n", table.name, table.doc);
  page += "| key | default | takes | meaning | in the digest |\n|---|---|---|---|---|\n";
  for (const RecipeKey& key : recipe_keys()) {
    if (key.table != table.name) continue;
    const RecipeValue value = recipe_value(Recipe{}, key);
    page += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", key.name, to_toml_value(value),
                        cell(allowed_words(key, value)), key.doc, effect_words(key.effect));
  }
  return page;
}

constexpr std::string_view kPageBegin = R"(# The recipe

A recipe is a TOML file that says everything about a run before it runs. Every key has a default, so a recipe holds only
what differs. An unknown, misplaced, duplicate or mistyped key is an error that names the file, the line, the key and the
nearest valid key, before any rank starts. `--set table.key=value` on the command line replaces a key; quotes around a
text may be left out there. An integer serves where a number is asked for, and a whole number where an integer is.

The run directory holds the resolved recipe with every key; run again, it gives the same run. A run may only be resumed
under a recipe with an equal digest. The last column of each table says which keys enter the digest: those that decide the
result. How long a run lasts decides it only where the schedule is `cosine` or `linear`.

`docs/recipe.schema.json` is the same reference as a JSON schema, for editors. This page and the schema are made from the
table of keys in `convoy/spec/recipe/recipe_schema.cpp`: change them there, then run the tests of `spec` once with
`CONVOY_REGENERATE=1` in the environment.
)";

}  // namespace

std::string to_toml_value(const RecipeValue& value) { return std::visit(WriteValue{}, value); }

std::string to_toml(const Recipe& recipe) {
  std::string text;
  std::string_view table;
  std::string below;  // tables inside the table, which end it
  for (const RecipeKey& key : recipe_keys()) {
    if (key.table != table) {
      text += std::exchange(below, "");
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", key.table);
      table = key.table;
    }
    const RecipeValue value = recipe_value(recipe, key);
    const auto* entries = std::get_if<RecipeTexts>(&value);
    if (entries == nullptr || entries->empty()) {
      text += fmt::format("{} = {}\n", key.name, to_toml_value(value));
      continue;
    }
    below += fmt::format("\n[{}.{}]\n", key.table, key.name);
    for (const auto& [name, entry] : *entries) below += fmt::format("{} = {}\n", toml_key(name), toml_quoted(entry));
  }
  return text + below;
}

std::string recipe_json_schema() {
  Json schema;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  schema["title"] = "Convoy recipe";
  schema["description"] =
      "Everything about a run, said before it runs. What keys demand of each other: docs/recipe.md.";
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  for (const RecipeTable& table : recipe_tables()) {
    Json& part = schema["properties"][std::string(table.name)];
    part["description"] = table.doc;
    part["type"] = "object";
    part["additionalProperties"] = false;
    for (const RecipeKey& key : recipe_keys()) {
      if (key.table == table.name) part["properties"][std::string(key.name)] = key_schema(key);
    }
  }
  return schema.dump(2) + "\n";
}

std::string recipe_page() {
  std::string page(kPageBegin);
  for (const RecipeTable& table : recipe_tables()) page += table_page(table);
  page += "\n## What keys demand of each other\n\n";
  for (const RecipeDemand& demand : recipe_demands()) {
    std::string keys;
    for (const std::string& key : demand.keys) keys += fmt::format("{}`{}`", keys.empty() ? "" : ", ", key);
    page += fmt::format("- {} ({})\n", demand.rule, keys);
  }
  return page;
}

std::string recipe_digest(const Recipe& recipe) {
  const bool length_matters = recipe.train.schedule == "cosine" || recipe.train.schedule == "linear";
  std::string text;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.effect == RecipeEffect::kSpeed || (key.effect == RecipeEffect::kLength && !length_matters)) continue;
    text += fmt::format("{}.{}={}\n", key.table, key.name, to_toml_value(recipe_value(recipe, key)));
  }
  return hash128_hex(text);
}

}  // namespace convoy::spec

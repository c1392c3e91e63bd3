// Reads recipes: a file's entries and the options after it, checked against the schema, the first mistake reported.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/spec/recipe/recipe_schema.h"
#include "convoy/spec/recipe/toml_document.h"

namespace convoy::spec {
namespace {

// What a person wrote, short enough for a message.
std::string shown(std::string_view text) { return one_line(text, 80); }

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, one_line(fmt::format("{}: {}", place, what), 2000));
}

std::string named(std::string_view table, std::string_view key) {
  return fmt::format("{}key '{}'", table.empty() ? "" : fmt::format("[{}] ", shown(table)), shown(key));
}

std::string path_of(const RecipeKey& key) { return fmt::format("{}.{}", key.table, key.name); }

// The edit distance is quadratic: nobody misspells a word of this length.
std::string hint(std::string_view word, const std::vector<std::string>& candidates) {
  return word.size() > 64 ? "" : did_you_mean(word, candidates);
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const RecipeTable& table : recipe_tables()) names.emplace_back(table.name);
  return names;
}

std::vector<std::string> key_names(std::string_view table) {
  std::vector<std::string> names;
  for (const RecipeKey& key : recipe_keys()) {
    if (table.empty() || key.table == table) names.emplace_back(key.name);
  }
  return names;
}

// Returns the tables that have a key of this name, for example "[task] or [model]"; "" when there are none.
std::string homes_of(std::string_view name) {
  std::string homes;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.name == name) homes += fmt::format("{}[{}]", homes.empty() ? "" : " or ", key.table);
  }
  return homes;
}

// Says what is wrong with a name that is no key of this table: misplaced, misspelt, or misspelt and misplaced.
std::string wrong_name(std::string_view table, std::string_view name) {
  const std::string homes = homes_of(name);
  if (!homes.empty()) return "misplaced: it belongs to " + homes;
  const std::string near = hint(name, key_names(table));
  if (!table.empty() && !near.empty()) return "unknown key" + near;
  const auto elsewhere = name.size() > 64 ? std::nullopt : nearest(name, key_names(""));
  if (!elsewhere) return "unknown key";
  return fmt::format("unknown key (did you mean '{}' in {}?)", *elsewhere, homes_of(*elsewhere));
}

std::string value_words(const TomlValue& value) {
  struct Words {
    std::string operator()(bool) const { return "true or false"; }
    std::string operator()(std::int64_t) const { return "an integer"; }
    std::string operator()(double number) const { return fmt::format("the number {}", number); }
    std::string operator()(const std::string& text) const { return fmt::format("the text \"{}\"", shown(text)); }
    std::string operator()(const std::vector<std::int64_t>&) const { return "a list"; }
    std::string operator()(const std::vector<std::string>&) const { return "a list of texts"; }
    std::string operator()(const std::vector<TomlText>&) const { return "a table"; }
    std::string operator()(const TomlOther& other) const { return other.what; }
  };
  return std::visit(Words{}, value);
}

// Puts a value into a field where its type fits: an integer serves as a number, and a whole number as an integer.
struct Assign {
  template <typename T>
  bool operator()(T* field, const T& value) const {
    *field = value;
    return true;
  }
  bool operator()(double* field, std::int64_t value) const {
    *field = static_cast<double>(value);
    return true;
  }
  bool operator()(std::int64_t* field, double value) const {
    if (std::abs(value) > 0x1.0p53 || value != std::trunc(value)) return false;  // written so that NaN is refused too
    *field = static_cast<std::int64_t>(value);
    return true;
  }
  bool operator()(std::vector<std::string>* field, const std::vector<std::int64_t>& value) const {
    field->clear();
    return value.empty();  // an empty list holds nothing of any kind
  }
  bool operator()(std::map<std::string, std::string>* field, const std::vector<TomlText>& value) const {
    field->clear();
    for (const TomlText& entry : value) field->emplace(entry.name, entry.text);
    return true;
  }
  template <typename Field, typename Value>
  bool operator()(Field*, const Value&) const {
    return false;
  }
};

// Returns what is wrong with a value that has the right type, or "".
struct Inspect {
  const RecipeKey& key;

  std::string operator()(bool) const { return ""; }
  std::string operator()(std::int64_t value) const { return number(static_cast<double>(value), fmt::to_string(value)); }
  std::string operator()(double value) const {
    if (!std::isfinite(value)) return fmt::format("must be a finite number, not {}", value);
    return number(value, fmt::format("{}", value));
  }
  std::string operator()(const std::string& text) const {
    if (key.choices.empty()) return text.empty() && !key.limits.allow(0) ? "must not be empty" : "";
    for (const std::string& choice : key.choices) {
      if (choice == text) return "";
    }
    return fmt::format("must be one of \"{}\", not \"{}\"{}", fmt::join(key.choices, "\", \""), shown(text),
                       hint(text, key.choices));
  }
  std::string operator()(const std::vector<std::int64_t>& list) const {
    if (list.empty() || list.size() > kMaxListLength) {
      return fmt::format("must hold 1 to {} integers, not {}", kMaxListLength, list.size());
    }
    for (const std::int64_t element : list) {
      if (std::string wrong = (*this)(element); !wrong.empty()) return "each element " + wrong;
    }
    return "";
  }
  std::string operator()(const std::vector<std::string>& list) const {
    return list.size() <= kMaxListLength ? ""
                                         : fmt::format("must hold at most {} texts, not {}", kMaxListLength, list.size());
  }
  std::string operator()(const std::map<std::string, std::string>& entries) const {
    return entries.size() <= kMaxNames ? "" : fmt::format("must hold at most {} names, not {}", kMaxNames, entries.size());
  }
  std::string number(double value, const std::string& text) const {
    return key.limits.allow(value) ? "" : fmt::format("must be {}, not {}", key.limits.words(), text);
  }
};

// Fills a recipe and remembers where each key was set, for the messages of demands between keys.
class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  void read(std::string_view text) {
    for (const TomlEntry& entry : parse_toml(text, name_)) read_entry(entry);
  }

  void override_with(const std::string& option) {
    const std::string place = "--set " + shown(option);
    const auto equals = option.find('=');
    const std::string path = trimmed(option.substr(0, equals));
    const auto dot = path.find('.');
    if (equals == std::string::npos || dot == std::string::npos) refuse(place, "write table.key=value");
    const RecipeKey& key = find(place, path.substr(0, dot), path.substr(dot + 1));
    set(place, key, option_value(place, key, trimmed(option.substr(equals + 1))));
  }

  Recipe finish() const {
    for (const RecipeDemand& demand : recipe_demands()) {
      if (!demand.met(recipe_)) refuse_demand(demand);
    }
    return recipe_;
  }

 private:
  void read_entry(const TomlEntry& entry) {
    const std::string place = fmt::format("{}:{}", name_, entry.line);
    if (entry.begins_table) {
      check_table(place, entry.table);
      return;
    }
    if (entry.table.empty() && is_table(entry.key)) {
      refuse(place, fmt::format("{}: must be a table, [{}], not {}", named("", entry.key), entry.key,
                                value_words(entry.value)));
    }
    set(place, find(place, entry.table, entry.key), entry.value);
  }

  static bool is_table(std::string_view name) {
    for (const RecipeTable& table : recipe_tables()) {
      if (table.name == name) return true;
    }
    return false;
  }

  static void check_table(const std::string& place, std::string_view table) {
    if (is_table(table)) return;
    const std::string near = hint(table, table_names());
    const std::string all = fmt::format(" (tables: {})", fmt::join(table_names(), ", "));
    refuse(place, fmt::format("[{}]: unknown table{}", shown(table), near.empty() ? all : near));
  }

  static const RecipeKey& find(const std::string& place, std::string_view table, std::string_view name) {
    if (!table.empty()) check_table(place, table);
    const RecipeKey* key = find_recipe_key(table, name);
    if (key == nullptr) refuse(place, fmt::format("{}: {}", named(table, name), wrong_name(table, name)));
    return *key;
  }

  static std::string trimmed(const std::string& text) {
    const auto begin = text.find_first_not_of(" \t");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
  }

  // A shell takes quotes away, so a text may come without; everything else is TOML.
  static TomlValue option_value(const std::string& place, const RecipeKey& key, const std::string& text) {
    const bool quoted = !text.empty() && (text.front() == '"' || text.front() == '\'');
    if (type_words(key) == "a text" && !quoted) {
      if (utf8_prefix(text) < text.size()) refuse(place, named(key.table, key.name) + ": not valid UTF-8");
      return text;
    }
    const std::string expected = fmt::format("{}: must be {}", named(key.table, key.name), type_words(key));
    std::vector<TomlEntry> entries;
    try {
      entries = parse_toml("[option]\nvalue = " + text, "value");
    } catch (const Error&) {
      refuse(place, fmt::format("{}, not '{}'", expected, shown(text)));
    }
    if (entries.size() != 2 || entries.back().begins_table) refuse(place, expected + ", and nothing after it");
    return entries.back().value;
  }

  void set(const std::string& place, const RecipeKey& key, const TomlValue& value) {
    if (!std::visit(Assign{}, key.field(recipe_), value)) {
      refuse(place,
             fmt::format("{}: must be {}, not {}", named(key.table, key.name), type_words(key), value_words(value)));
    }
    const std::string wrong = std::visit(Inspect{key}, recipe_value(recipe_, key));
    if (!wrong.empty()) refuse(place, fmt::format("{}: {}", named(key.table, key.name), wrong));
    if (const auto* entries = std::get_if<std::vector<TomlText>>(&value)) check_entries(place, key, *entries);
    places_[path_of(key)] = place;
  }

  // An option has one place; an entry of a file has a line of its own.
  void check_entries(const std::string& place, const RecipeKey& key, const std::vector<TomlText>& entries) const {
    for (const TomlText& entry : entries) {
      const std::string wrong = key.entry_error == nullptr ? "" : key.entry_error(entry.name, entry.text);
      if (wrong.empty()) continue;
      const bool option = place.rfind("--set ", 0) == 0;
      refuse(option ? place : fmt::format("{}:{}", name_, entry.line),
             fmt::format("{}: {}", named(path_of(key), entry.name), wrong));
    }
  }

  // Names the first of the demand's keys that was set by hand: a default is nobody's mistake.
  [[noreturn]] void refuse_demand(const RecipeDemand& demand) const {
    const std::string* culprit = nullptr;
    std::string values;
    for (const std::string& path : demand.keys) {
      if (culprit == nullptr && places_.count(path) > 0) culprit = &path;
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", path,
                            to_toml_value(recipe_value(recipe_, key_at(path))));
    }
    const RecipeKey& key = key_at(culprit == nullptr ? demand.keys.front() : *culprit);
    const std::string place = culprit == nullptr ? name_ : places_.at(*culprit);
    refuse(place, fmt::format("{}: {} ({})", named(key.table, key.name), demand.rule, values));
  }

  static const RecipeKey& key_at(const std::string& path) {
    const auto dot = path.find('.');
    const RecipeKey* key = find_recipe_key(path.substr(0, dot), path.substr(dot + 1));
    CONVOY_CHECK(key != nullptr, "a demand names the unknown key " + path);
    return *key;
  }

  std::string name_;
  Recipe recipe_;
  std::map<std::string, std::string> places_;
};

}  // namespace

Recipe parse_recipe(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  Reader reader(name);
  reader.read(text);
  for (const std::string& option : overrides) reader.override_with(option);
  return reader.finish();
}

Recipe read_recipe(const std::string& path, const std::vector<std::string>& overrides) {
  return parse_recipe(local_files().read(path), path, overrides);
}

}  // namespace convoy::spec

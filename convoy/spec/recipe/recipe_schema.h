// The recipe's schema: one table of all keys, from which the reader, the writer, the JSON schema and the page are made.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convoy/spec/recipe.h"

namespace convoy::spec {

/// Where a key's value is kept inside a Recipe; the alternative says which type the key has.
using RecipeField = std::variant<bool*, std::int64_t*, double*, std::string*, std::vector<std::int64_t>*,
                                 std::vector<std::string>*, std::map<std::string, std::string>*>;

/// A key's value; the alternatives are those of RecipeField, in the same order.
using RecipeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                 std::vector<std::string>, std::map<std::string, std::string>>;

/// The longest list that a key takes; one of integers may not be empty.
inline constexpr std::size_t kMaxListLength = 64;

/// The most entries that a table with names of one's own takes.
inline constexpr std::size_t kMaxNames = 1024;

/// Which numbers a key takes (a list: each of its elements; a text: its length). Unset bounds are infinite.
struct RecipeLimits {
  /// Stands for no bound.
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  /// The lower bound.
  double least = -kUnbounded;
  /// The upper bound.
  double most = kUnbounded;
  /// Whether the lower bound itself is left out.
  bool above = false;
  /// Whether the upper bound itself is left out.
  bool below = false;
  /// Returns whether a number lies inside.
  bool allow(double number) const;
  /// Returns the limits in words, for example "at least 0 and below 1"; "" when there are none.
  std::string words() const;
};

/// What a key decides, and with it when it enters the digest of a run: always, where the schedule depends on the length
/// of the run, or never.
enum class RecipeEffect { kResult, kLength, kSpeed };

/// One key of a recipe.
struct RecipeKey {
  /// The table that it stands in.
  std::string_view table;
  /// Its name.
  std::string_view name;
  /// Returns where its value is kept.
  RecipeField (*field)(Recipe& recipe);
  /// One line on what it does.
  std::string_view doc;
  /// Which numbers it takes.
  RecipeLimits limits;
  /// Which texts it takes; empty takes any.
  std::vector<std::string> choices;
  /// What it decides.
  RecipeEffect effect = RecipeEffect::kResult;
  /// A table with names of one's own: returns what is wrong with one of its entries, or "".
  std::string (*entry_error)(const std::string& name, const std::string& text) = nullptr;
};

/// One table of a recipe.
struct RecipeTable {
  /// Its name.
  std::string_view name;
  /// One line on what its keys say.
  std::string_view doc;
};

/// Returns all tables in the order in which they are written.
/// Ownership:  lives for the whole process
std::span<const RecipeTable> recipe_tables();

/// Returns all keys, table by table, in the order in which they are written.
/// Ownership:  lives for the whole process
std::span<const RecipeKey> recipe_keys();

/// Returns the key with this name in this table, or nullptr.
const RecipeKey* find_recipe_key(std::string_view table, std::string_view name);

/// Returns the type that a key's value has, in words: "true or false", "an integer", "a number", "a text", "a list of
/// integers", "a list of texts", "a table of texts".
std::string_view type_words(const RecipeKey& key);

/// Returns a key's value in a recipe.
RecipeValue recipe_value(const Recipe& recipe, const RecipeKey& key);

/// Returns a value as TOML writes it; numbers with as many digits as reading the same number back needs.
/// Errors:     kInvalidArgument for a text that is not UTF-8, or a number that is not finite
std::string to_toml_value(const RecipeValue& value);

/// What keys demand of each other.
struct RecipeDemand {
  /// The keys that it is about, as "table.name", the one to change first.
  std::vector<std::string> keys;
  /// The demand, as a sentence without a full stop.
  std::string_view rule;
  /// Returns whether a recipe meets it.
  bool (*met)(const Recipe& recipe);
};

/// Returns all demands, in the order in which they are checked.
/// Ownership:  lives for the whole process
std::span<const RecipeDemand> recipe_demands();

}  // namespace convoy::spec

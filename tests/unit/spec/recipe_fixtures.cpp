#include "tests/unit/spec/recipe_fixtures.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"
#include "convoy/spec/recipe/data_column.h"
#include "convoy/spec/recipe/recipe_schema.h"

namespace convoy::spec {
namespace {

// A number inside the limits: sometimes a border, mostly one with all its digits.
double random_number(const RecipeLimits& limits) {
  const double low = std::isinf(limits.least) ? -1e30 : limits.least;
  const double high = std::isinf(limits.most) ? 1e30 : limits.most;
  const double fraction = static_cast<double>(*rc::gen::arbitrary<std::uint64_t>() >> 11) * 0x1.0p-53;
  const int scale = *rc::gen::inRange(0, 40);
  const double number = low + (high - low) * fraction * std::pow(10.0, -scale);
  if (limits.allow(low) && *rc::gen::inRange(0, 8) == 0) return low;
  return limits.allow(number) ? number : high / 3;
}

std::int64_t random_integer(const RecipeLimits& limits) {
  const auto low = static_cast<std::int64_t>(limits.least);
  const auto high = std::isinf(limits.most) ? std::int64_t{1} << 52 : static_cast<std::int64_t>(limits.most);
  const int shift = *rc::gen::inRange(0, 50);
  const auto span = static_cast<std::uint64_t>(high - low) >> shift;
  return low + static_cast<std::int64_t>(*rc::gen::arbitrary<std::uint64_t>() % (span + 1));
}

// Any text that is valid UTF-8, with quotes, escapes, control characters and all planes.
std::string random_text() {
  std::string text;
  const int length = *rc::gen::inRange(1, 12);
  for (int i = 0; i < length; ++i) {
    const auto code = *rc::gen::elementOf(std::vector<std::string>{
        "a", "Z", "\"", "\\", "'", "\n", "\r", "\t", "#", "=", "\x01", "\x7f", std::string(1, '\0'), "]", " ",
        "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x9a\xa2", "\xef\xbb\xbf"});
    text += code;
  }
  return text;
}

struct Randomise {
  const RecipeKey& key;
  void operator()(bool* field) const { *field = *rc::gen::arbitrary<bool>(); }
  void operator()(std::int64_t* field) const { *field = random_integer(key.limits); }
  void operator()(double* field) const { *field = random_number(key.limits); }
  void operator()(std::string* field) const {
    *field = key.choices.empty() ? random_text() : *rc::gen::elementOf(key.choices);
  }
  void operator()(std::vector<std::string>* field) const {
    field->resize(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
    for (auto& element : *field) element = random_text();
  }
  void operator()(std::map<std::string, std::string>* field) const {
    static const std::vector<std::string> declarations = {
        "number", "category", "number, missing = mean", "category, missing = own, unseen = own", "excluded: \"x\" = 1"};
    const int columns = *rc::gen::inRange(0, 5);
    for (int i = 0; i < columns; ++i) (*field)[random_text()] = *rc::gen::elementOf(declarations);
  }
  void operator()(std::vector<std::int64_t>* field) const {
    field->resize(static_cast<std::size_t>(*rc::gen::inRange(1, 6)));
    for (auto& element : *field) element = random_integer(key.limits);
  }
};

void meet_data_demands(Recipe& recipe) {
  DataRecipe& data = recipe.data;
  const DataRecipe defaults;
  if (recipe.train.class_weights != "none") data.resample = "none";
  if (data.format == "csv") {
    if (data.columns.empty() || count_columns(data.columns, ColumnKind::kExcluded) > 0) data.columns["f"] = "number";
    data.columns["y"] = "target";
    if (data.split == "group") data.columns["g"] = "group";
    if (data.split == "time") data.columns["t"] = "time";
    data.path += "x";
    if (data.split == "official") data.test_path += "x";
    data.test = data.test_path.empty() ? 1 + data.test : 0;
    data.shift = 0;
    data.flip = false;
    return;
  }
  data.columns.clear();
  data.split = "official";
  data.test = 0;
  data.test_path = data.positive = "";
  data.missing = defaults.missing;
  data.delimiter = defaults.delimiter;
  if (data.format == "cifar10") data.path += "x";
}

// Changes what the demands between keys forbid.
void meet_demands(Recipe& recipe) {
  meet_data_demands(recipe);
  if (!recipe.model.script.empty()) recipe.model.name = ModelRecipe{}.name;
  TrainRecipe& train = recipe.train;
  const TrainRecipe defaults;
  if (train.epochs + train.steps == 0) train.steps = 1;
  if (train.target_metric.empty()) train.target = 0.0;
  if (!train.target_metric.empty()) {
    train.target = 0.1 + train.target / (1.0 + 2.0 * train.target);
    recipe.data.validation += 1;
    train.evaluate_every += 1;
  }
  recipe.replicas.count = 1 + recipe.replicas.count % 16;
  train.accumulation = 1 + train.accumulation % 16;
  train.global_batch = std::max<std::int64_t>(train.global_batch, 256);
  if (train.drop_last) recipe.data.limit = 0;
  if (train.optimizer == "sgd") {
    train.beta1 = defaults.beta1;
    train.beta2 = defaults.beta2;
    train.epsilon = defaults.epsilon;
    if (train.nesterov) train.momentum = 0.5 + train.momentum / 2;
    if (train.nesterov || train.momentum == 0.0) train.dampening = 0.0;
  } else {
    train.momentum = train.dampening = 0.0;
    train.nesterov = false;
  }
  if (train.schedule == "step") train.schedule_every += 1;
  if (train.schedule != "step") {
    train.schedule_every = 0;
    train.schedule_factor = defaults.schedule_factor;
  }
  if (train.schedule != "cosine" && train.schedule != "linear") train.final_fraction = 0.0;
  if (recipe.comm.transport != "gloo") recipe.comm.interfaces.clear();
  if (recipe.comm.interfaces.size() > 8) recipe.comm.interfaces.resize(8);
  if (recipe.replicas.mode == "on" && !recipe.comm.algorithm.starts_with("ordered")) recipe.comm.algorithm = "auto";
  if (recipe.replicas.mode == "off") recipe.parallel.share = "even";
  if (!recipe.model.batch_norm) recipe.model.sync_batch_norm = false;
}

}  // namespace

std::string refusal(const std::string& text, const std::vector<std::string>& overrides) {
  try {
    parse_recipe(text, "r.toml", overrides);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) return error.what();
    return std::string(to_string(error.code())) + " " + error.what();
  }
  return "accepted";
}

std::string whole_recipe() { return to_toml(Recipe{}); }

Recipe random_recipe() {
  Recipe recipe;
  for (const RecipeKey& key : recipe_keys()) std::visit(Randomise{key}, key.field(recipe));
  meet_demands(recipe);
  return recipe;
}

Recipe recipe_of(std::int64_t replicas, std::int64_t global_batch, std::int64_t accumulation) {
  Recipe recipe;
  recipe.replicas.count = replicas;
  recipe.train.global_batch = global_batch;
  recipe.train.accumulation = accumulation;
  return recipe;
}

}  // namespace convoy::spec

// What is written about recipes reads back: TOML, the JSON schema, the page, the digest.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/recipe/recipe_schema.h"
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using ::testing::HasSubstr;

RC_GTEST_PROP(RecipeWriter, WritesWhatReadsBackTheSame, ()) {
  const Recipe recipe = random_recipe();
  const std::string text = to_toml(recipe);
  const Recipe again = parse_recipe(text, "again.toml");
  RC_ASSERT(again == recipe);
  RC_ASSERT(to_toml(again) == text);
  RC_ASSERT(recipe_digest(again) == recipe_digest(recipe));
}

// The same through --set, one key after the other, on top of an empty file.
RC_GTEST_PROP(RecipeWriter, WritesValuesThatOptionsReadBack, ()) {
  const Recipe recipe = random_recipe();
  std::vector<std::string> options;
  for (const RecipeKey& key : recipe_keys()) {
    options.push_back(fmt::format("{}.{}={}", key.table, key.name, to_toml_value(recipe_value(recipe, key))));
  }
  RC_ASSERT(parse_recipe("", "r.toml", options) == recipe);
}

TEST(RecipeWriter, KeepsEveryDigitOfANumber) {
  for (const double number : {0.1, 1e-300, 5e-324, 1.7976931348623157e308, 1.0 / 3.0, 123456789.125, 1e22, 1.0}) {
    Recipe recipe;
    recipe.train.weight_decay = number;
    EXPECT_EQ(parse_recipe(to_toml(recipe), "r").train.weight_decay, number);
  }
  Recipe recipe;
  recipe.train.weight_decay = -0.0;
  EXPECT_TRUE(std::signbit(parse_recipe(to_toml(recipe), "r").train.weight_decay));
}

TEST(RecipeWriter, WritesEveryKeyOfEveryTableOnce) {
  const std::string text = to_toml(Recipe{});
  std::set<std::string> seen;
  for (const RecipeTable& table : recipe_tables()) EXPECT_THAT(text, HasSubstr(fmt::format("[{}]\n", table.name)));
  for (const RecipeKey& key : recipe_keys()) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\n{} = ", key.name)));
    EXPECT_TRUE(seen.insert(fmt::format("{}.{}", key.table, key.name)).second) << key.table << "." << key.name;
  }
}

// A field that the schema forgot would be neither read nor written: the structs have no member beside their keys.
TEST(RecipeSchema, CoversTheWholeStruct) {
  std::size_t bytes = 0;
  std::set<const void*> places;
  Recipe recipe;
  for (const RecipeKey& key : recipe_keys()) {
    std::visit([&](auto* field) { bytes += std::max(sizeof(*field), sizeof(void*)); }, key.field(recipe));
    std::visit([&](auto* field) { places.insert(field); }, key.field(recipe));
  }
  EXPECT_EQ(places.size(), recipe_keys().size()) << "two keys share a field";
  EXPECT_GE(bytes, sizeof(Recipe)) << "a field without a key";
}

TEST(RecipeSchema, HasDefaultsInsideItsOwnLimits) { EXPECT_EQ(parse_recipe(to_toml(Recipe{}), "r.toml"), Recipe{}); }

TEST(RecipeSchema, DemandsNameKeysThatExist) {
  for (const RecipeDemand& demand : recipe_demands()) {
    EXPECT_FALSE(demand.keys.empty());
    EXPECT_TRUE(demand.met(Recipe{})) << demand.rule;
    for (const std::string& key : demand.keys) {
      const auto dot = key.find('.');
      EXPECT_NE(find_recipe_key(key.substr(0, dot), key.substr(dot + 1)), nullptr) << key;
    }
  }
}

TEST(RecipeWriter, RefusesWhatTomlCannotHold) {
  Recipe recipe;
  recipe.task.name = "\xff";
  EXPECT_THROW(to_toml(recipe), Error);
  recipe = Recipe{};
  recipe.train.target = std::nan("");
  EXPECT_THROW(to_toml(recipe), Error);
}

std::string digest_with(const std::string& option) { return recipe_digest(parse_recipe("", "r.toml", {option})); }

TEST(RecipeDigest, IgnoresWhatChangesOnlySpeedOrExtent) {
  const std::string digest = recipe_digest(Recipe{});
  EXPECT_EQ(digest.size(), 32u);
  for (const char* option : {"task.name=x", "data.prefetch=9", "data.path=/x", "parallel.bucket_bytes=64",
                             "parallel.overlap=false", "comm.timeout_s=1", "comm.chunk_bytes=64", "comm.transport=gloo",
                             "comm.algorithm=ordered_direct", "comm.hosts=[\"a\"]", "comm.between_latency_us=9",
                             "checkpoint.every_steps=3", "checkpoint.keep=7", "checkpoint.at_end=false",
                             "measure.warmup_steps=1", "cost.device_hour=2.5", "train.epochs=7", "train.steps=9"}) {
    EXPECT_EQ(digest_with(option), digest) << option;
  }
  EXPECT_EQ(recipe_digest(parse_recipe("", "r", {"train.target=0.9", "train.target_metric=accuracy"})), digest);
}

TEST(RecipeDigest, ChangesWithEverythingElse) {
  std::set<std::string> digests = {recipe_digest(Recipe{})};
  const std::vector<std::string> options = {"task.seed=2",
                                            "data.validation=4999",
                                            "data.split_seed=2",
                                            "data.limit=9",
                                            "data.shift=1",
                                            "data.flip=true",
                                            "model.name=cnn",
                                            "model.hidden=[25, 6]",
                                            "model.channels=[32]",
                                            "model.dropout=0.1",
                                            "model.batch_norm=false",
                                            "model.dtype=float64",
                                            "train.global_batch=127",
                                            "train.accumulation=2",
                                            "train.drop_last=true",
                                            "train.optimizer=adam",
                                            "train.momentum=0.9",
                                            "train.learning_rate=0.11",
                                            "train.weight_decay=1e-9",
                                            "train.clip_norm=1",
                                            "train.warmup=3",
                                            "train.evaluation_batch=50",
                                            "train.evaluate_every=2",
                                            "train.schedule=cosine",
                                            "replicas.mode=off",
                                            "replicas.count=3",
                                            "replicas.buffer_merge=first",
                                            "parallel.threads=2",
                                            "train.schedule_unit=samples"};
  for (const std::string& option : options) EXPECT_TRUE(digests.insert(digest_with(option)).second) << option;
}

TEST(RecipeDigest, CountsTheLengthWhereTheScheduleDependsOnIt) {
  for (const char* schedule : {"train.schedule=cosine", "train.schedule=linear"}) {
    const auto digest = [&](const std::string& option) {
      return recipe_digest(parse_recipe("", "r.toml", {schedule, option}));
    };
    EXPECT_NE(digest("train.epochs=2"), digest("train.epochs=3"));
    EXPECT_NE(digest("train.steps=2"), digest("train.steps=3"));
    EXPECT_EQ(digest("checkpoint.keep=2"), digest("checkpoint.keep=3"));
  }
}

TEST(RecipeJsonSchema, ClosesEveryTableAndGivesEveryDefault) {
  const auto schema = nlohmann::json::parse(recipe_json_schema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"].size(), recipe_tables().size());
  std::size_t keys = 0;
  for (const auto& table : schema["properties"]) {
    EXPECT_EQ(table["additionalProperties"], false);
    for (const auto& key : table["properties"]) {
      EXPECT_TRUE(key.contains("default") && key.contains("type") && key.contains("description"));
      ++keys;
    }
  }
  EXPECT_EQ(keys, recipe_keys().size());
  const auto& train = schema["properties"]["train"]["properties"];
  EXPECT_EQ(train["momentum"]["exclusiveMaximum"], 1);
  EXPECT_EQ(train["optimizer"]["enum"], nlohmann::json::parse(R"(["sgd", "adam", "adamw"])"));
  EXPECT_EQ(schema["properties"]["model"]["properties"]["hidden"]["items"]["minimum"], 1);
}

TEST(RecipePage, NamesEveryKeyAndEveryDemand) {
  const std::string page = recipe_page();
  for (const RecipeKey& key : recipe_keys()) EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` |", key.name)));
  for (const RecipeDemand& demand : recipe_demands()) EXPECT_THAT(page, HasSubstr(std::string(demand.rule)));
}

// Compares a file of the repository with what the code says it should be; CONVOY_REGENERATE=1 writes it first.
void expect_file(const std::string& path, const std::string& content) {
  if (std::getenv("CONVOY_REGENERATE") != nullptr) write_atomic(local_files(), path, content);
  ASSERT_TRUE(local_files().exists(path)) << path;
  EXPECT_EQ(local_files().read(path), content) << "run this test once with CONVOY_REGENERATE=1 in the environment";
}

TEST(RecipePage, IsTheFileInDocs) { expect_file(CONVOY_SOURCE_DIR "/docs/recipe.md", recipe_page()); }

TEST(RecipeJsonSchema, IsTheFileInDocs) {
  expect_file(CONVOY_SOURCE_DIR "/docs/recipe.schema.json", recipe_json_schema());
}

}  // namespace
}  // namespace convoy::spec

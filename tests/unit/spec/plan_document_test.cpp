// The training plan says what the recipe declares, states what follows, and lists what is open by its key.
#include "convoy/spec/document/plan_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/spec/recipe/recipe_schema.h"
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> open_keys(const PlanDocument& plan) {
  std::vector<std::string> keys;
  for (const PlanLine& line : plan.open()) keys.push_back(line.key);
  return keys;
}

std::string page(const Recipe& recipe, const PlanFacts& facts = {}) {
  return to_markdown(make_plan_document(recipe, facts));
}

TEST(PlanDocument, ListsWhatIsNotDeclaredByItsKey) {
  const PlanDocument plan = make_plan_document(Recipe{});
  EXPECT_THAT(open_keys(plan),
              ElementsAre("task.source", "task.prediction_moment", "task.label", "task.features", "measure.baseline",
                          "measure.metrics", "measure.accepted", "task.permitted_repeats"));
  EXPECT_THAT(to_markdown(plan), HasSubstr("- moment of prediction: declare `task.prediction_moment`"));
  EXPECT_THAT(to_markdown(plan), HasSubstr("- **source**: open: declare `task.source`"));
}

TEST(PlanDocument, EachOpenKeyIsARecipeKeyThatClosesIt) {
  Recipe recipe;
  for (const std::string& path : open_keys(make_plan_document(recipe))) {
    const auto dot = path.find('.');
    const RecipeKey* key = find_recipe_key(path.substr(0, dot), path.substr(dot + 1));
    ASSERT_NE(key, nullptr) << path;
    EXPECT_EQ(key->effect, RecipeEffect::kSpeed) << path << " must not change the digest";
    *std::get<std::string*>(key->field(recipe)) = "said in " + path;
    EXPECT_THAT(page(recipe), HasSubstr("said in " + path));
  }
  EXPECT_THAT(open_keys(make_plan_document(recipe)), IsEmpty());
  EXPECT_THAT(page(recipe), HasSubstr("## Open\n\nNothing.\n"));
  EXPECT_EQ(recipe_digest(recipe), recipe_digest(Recipe{}));
}

TEST(PlanDocument, HasEverySection) {
  const std::string text = page(Recipe{});
  for (const char* title : {"Open", "Task", "Features", "Encoding", "Splits", "Division of work", "Sampling",
                            "Model and training", "Baseline", "Metrics", "Recovery"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n## ") + title + "\n"));
  }
}

TEST(PlanDocument, StatesWhatFollowsFromTheRecipe) {
  Recipe recipe;
  recipe.data.validation = 4321;
  recipe.data.split_seed = 77;
  recipe.data.shift = 2;
  recipe.train.drop_last = true;
  recipe.train.schedule = "cosine";
  recipe.train.warmup = 9;
  recipe.checkpoint.every_steps = 40;
  recipe.replicas.count = 6;
  const std::string text = page(recipe);
  for (const char* words :
       {"- **validation**: 4321 samples", "at random by seed 77", "shifted by up to 2 pixels",
        "left out when it is short", "cosine, after 9 steps of warm-up", "every 40 steps and at the end",
        "less than 40 steps, which are done again", "any number from 1 to 6"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

TEST(PlanDocument, TellsWhoCarriesWhichReplicas) {
  Recipe recipe;
  recipe.replicas.count = 5;
  recipe.train.global_batch = 100;
  PlanFacts facts;
  facts.ranks = 2;
  EXPECT_THAT(page(recipe, facts), HasSubstr("| 0 | 0 to 2 | 60 | 20 to 20 |\n| 1 | 3 to 4 | 40 | 20 to 20 |\n"));
  facts.ranks = 6;
  EXPECT_THROW(make_plan_document(recipe, facts), Error);
}

TEST(PlanDocument, TakesUpFacts) {
  PlanFacts facts;
  facts.recipe_file = "bank.toml";
  facts.sizes = PlanSizes{1000, 200, 300};
  facts.baseline = PlanBaseline{"runs/one", 1, true, 12.5, 1000.0, 4096, {{"accuracy", 0.91}}};
  const std::string text = page(Recipe{}, facts);
  for (const char* words :
       {"Made from bank.toml", "| training | 1000 |", "| test | 300 |", "(104 of 128 samples)",
        "runs/one on 1 rank under a recipe with other results, median step 12.50 ms, 1000 samples a second, parameters "
        "4.0 KiB, accuracy 0.9100"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  facts.sizes.reset();
  facts.data_problem = "there is no file x";
  EXPECT_THAT(page(Recipe{}, facts), HasSubstr("- **sizes**: not known: there is no file x\n"));
}

TEST(PlanDocument, TellsOfEachColumnOfATable) {
  Recipe recipe;
  recipe.data.format = "csv";
  recipe.data.path = "bank.csv";
  recipe.data.split = "time";
  recipe.data.test = 500;
  recipe.data.slices = {"job", "month"};
  recipe.data.resample = "balanced";
  recipe.train.class_weights = "balanced";
  recipe.data.columns = {{"age", "number, missing = mean"},
                         {"duration", "excluded: unknown at prediction time"},
                         {"job", "category, unseen = own"},
                         {"when", "time"},
                         {"y", "target"}};
  const PlanDocument plan = make_plan_document(recipe);
  const std::string text = to_markdown(plan);
  for (const char* words :
       {"CSV, in bank.csv", "| duration | excluded | no: unknown at prediction time |",
        "| y | target | what is predicted |",
        "| age | (value - mean) / deviation; a missing value becomes the mean, and one more feature says so |",
        "a category that the training part lacks belongs to none |", "by time (column when): the latest samples",
        "- **test**: 500 samples", "- **slices**: job, month", "all classes are drawn alike",
        "- **class weights**: balanced, from the classes of the whole training part",
        "fitted on**: the training part alone"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(text, Not(HasSubstr("| when | (value")));
  EXPECT_THAT(text, HasSubstr("## Features\n\n| column |"));
  EXPECT_THAT(open_keys(plan), Not(::testing::Contains("task.features"))) << "the columns say it";
}

TEST(PlanDocument, FilesThatOnlyTheUserKnowsAreOpen) {
  Recipe recipe;
  recipe.data.format = "cifar10";
  EXPECT_THAT(open_keys(make_plan_document(recipe)), ::testing::Contains("data.path"));
  recipe.data.path = "cifar";
  EXPECT_THAT(open_keys(make_plan_document(recipe)), Not(::testing::Contains("data.path")));
}

TEST(PlanDocument, NoTextOfAUserEndsALineOrATable) {
  Recipe recipe;
  recipe.task.name = "a\n# b";
  recipe.task.source = "one\ntwo | three <script> \\ four";
  recipe.data.columns = {{"a|b", "number"}};
  const std::string text = page(recipe);
  EXPECT_THAT(text, HasSubstr("# Training plan: a # b\n"));
  EXPECT_THAT(text, HasSubstr("- **source**: one two \\| three \\<script> \\\\ four\n"));
  EXPECT_THAT(text, HasSubstr("| a\\|b | number | feature |"));
}

TEST(PlanDocument, WritesItselfAsJson) {
  Recipe recipe;
  recipe.task.source = "here";
  const auto json = to_json(make_plan_document(recipe));
  EXPECT_EQ(json["name"], "unnamed");
  EXPECT_EQ(json["open"].size(), 7u);
  EXPECT_EQ(json["open"][0]["key"], "task.prediction_moment");
  EXPECT_EQ(json["sections"][0]["lines"][0]["text"], "here");
}

// Only the user of an example can know where the files lie on their machine.
TEST(PlanDocument, ExampleRecipesLeaveNothingOpen) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(CONVOY_SOURCE_DIR) + "/examples/recipes")) {
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().filename().string());
    for (const std::string& key : open_keys(make_plan_document(read_recipe(entry.path().string())))) {
      EXPECT_EQ(key, "data.path");
    }
    ++recipes;
  }
  EXPECT_GE(recipes, 3);
}

}  // namespace
}  // namespace convoy::spec

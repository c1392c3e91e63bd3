// Every strategy has a card with all answers, and the documents show the same ones.
#include "convoy/spec/document/strategy_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "convoy/base/error.h"
#include "convoy/spec/document/step_story.h"
#include "convoy/spec/recipe/recipe_schema.h"

namespace convoy::spec {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> strategies_of_the_schema() {
  for (const RecipeKey& key : recipe_keys()) {
    if (key.table == "parallel" && key.name == "strategy") return key.choices;
  }
  return {};
}

TEST(StrategyCard, EveryStrategyOfARecipeHasOne) {
  const std::vector<std::string> strategies = strategies_of_the_schema();
  ASSERT_FALSE(strategies.empty());
  std::set<std::string> with_card;
  for (const StrategyCard& card : strategy_cards()) with_card.emplace(card.strategy);
  EXPECT_EQ(with_card, std::set<std::string>(strategies.begin(), strategies.end()));
}

TEST(StrategyCard, EveryQuestionIsAnsweredAndPrinted) {
  EXPECT_EQ(card_lines().size(), 7u);
  for (const StrategyCard& card : strategy_cards()) {
    const std::string text = card_text(card);
    const auto json = to_json(card);
    for (const CardLine& line : card_lines()) {
      const std::string answer(card.*line.answer);
      EXPECT_GT(answer.size(), 20u) << card.form << ": " << line.name;
      EXPECT_THAT(text, HasSubstr("  " + std::string(line.name) + ": " + answer + "\n"));
      EXPECT_EQ(json[std::string(line.key)], answer);
    }
    EXPECT_EQ(&strategy_card(card.strategy, card.form), &card);
  }
}

TEST(StrategyCard, NamesAStrategyWithoutOne) {
  try {
    strategy_card("data", "backwards");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("no card of strategy 'data' in the form 'backwards'"));
  }
}

// The answer on bytes is the formula that the schedules follow: p (N - 1) / N, and (N - 1) / N more without division.
TEST(StrategyCard, GrowthOfBytesIsThatOfTheExchange) {
  for (const int ranks : {2, 4, 8}) {
    Recipe recipe;
    recipe.replicas.count = 8;
    const double part = (ranks - 1.0) / ranks;
    EXPECT_DOUBLE_EQ(tell_step(recipe, ranks, 0).prices.front().most_gradients(), part);
    recipe.parallel.divide_update = false;
    EXPECT_DOUBLE_EQ(tell_step(recipe, ranks, 0).prices.front().most_gradients(), 2 * part);
  }
}

TEST(StrategyCard, StandsInTheUsersGuide) {
  std::ifstream file(CONVOY_SOURCE_DIR "/docs/data-parallel.md");
  std::ostringstream page;
  page << file.rdbuf();
  for (const StrategyCard& card : strategy_cards()) {
    if (card.strategy != "data") continue;
    EXPECT_THAT(page.str(), HasSubstr(card_markdown(card)));
  }
}

}  // namespace
}  // namespace convoy::spec

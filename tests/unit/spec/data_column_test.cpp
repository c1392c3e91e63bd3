// Declarations of columns, and how a recipe carries them.
#include "convoy/spec/recipe/data_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/spec/recipe.h"
#include "tests/unit/spec/recipe_fixtures.h"

namespace convoy::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kTable = "[data]\nformat = \"csv\"\npath = \"t.csv\"\nsplit = \"random\"\ntest = 5\n";

TEST(DataColumn, IsAKindWithOptionsOrAReason) {
  EXPECT_EQ(parse_data_column("number"), (DataColumn{ColumnKind::kNumber, "", false, false}));
  EXPECT_EQ(parse_data_column(" number ,missing=mean"), (DataColumn{ColumnKind::kNumber, "", true, false}));
  EXPECT_EQ(parse_data_column("category, unseen = own, missing = own"),
            (DataColumn{ColumnKind::kCategory, "", true, true}));
  EXPECT_EQ(parse_data_column("target").kind, ColumnKind::kTarget);
  EXPECT_EQ(parse_data_column("group").kind, ColumnKind::kGroup);
  EXPECT_EQ(parse_data_column("time").kind, ColumnKind::kTime);
  EXPECT_EQ(parse_data_column("excluded: known later, unlike x"),
            (DataColumn{ColumnKind::kExcluded, "known later, unlike x", false, false}));
}

TEST(DataColumn, SaysWhatIsWrongAndWhatItMayBe) {
  EXPECT_THAT(data_column_error("a", "nubmer"), HasSubstr("not \"nubmer\" (did you mean 'number'?)"));
  EXPECT_THAT(data_column_error("a", ""), HasSubstr("\"excluded: REASON\""));
  EXPECT_EQ(data_column_error("a", "excluded"), "an excluded column needs its reason: \"excluded: REASON\"");
  EXPECT_EQ(data_column_error("a", "excluded:  "), "an excluded column needs its reason: \"excluded: REASON\"");
  EXPECT_THAT(data_column_error("a", "number, missing = own"), HasSubstr("which takes missing = mean"));
  EXPECT_THAT(data_column_error("a", "number, unseen = own"), HasSubstr("\"unseen = own\" is no option"));
  EXPECT_THAT(data_column_error("a", "category, missing"), HasSubstr("which takes missing = own, unseen = own"));
  EXPECT_THAT(data_column_error("a", "target, missing = own"), HasSubstr("which takes nothing"));
  EXPECT_THAT(data_column_error("a", "number,"), HasSubstr("\"\" is no option"));
  EXPECT_EQ(data_column_error("", "number"), "a column needs a name");
  EXPECT_EQ(data_column_error("a", "number"), "");
}

TEST(RecipeColumns, AreReadAsATableOfAnyNames) {
  const Recipe recipe = parse_recipe(
      kTable +
          "missing = [\"\", \"NA\"]\n[data.columns]\nage = \"number\"\n\"emp.var.rate\" = 'number'\ny = \"target\"\n",
      "r.toml");
  EXPECT_THAT(recipe.data.columns,
              ElementsAre(Pair("age", "number"), Pair("emp.var.rate", "number"), Pair("y", "target")));
  EXPECT_THAT(recipe.data.missing, ElementsAre("", "NA"));
  EXPECT_EQ(parse_recipe(to_toml(recipe), "again.toml"), recipe);
  EXPECT_THAT(to_toml(recipe),
              HasSubstr("\n[data.columns]\nage = \"number\"\n\"emp.var.rate\" = \"number\"\ny = \"target\"\n"));
}

TEST(RecipeColumns, TakeOptionsOfTheCommandLine) {
  const Recipe recipe = parse_recipe(
      kTable, "r.toml", {"data.columns={a=\"number\", y=\"target\"}", "data.slices=[\"a\"]", "data.missing=[]"});
  EXPECT_EQ(recipe.data.columns.size(), 2u);
  EXPECT_THAT(recipe.data.slices, ElementsAre("a"));
  EXPECT_TRUE(recipe.data.missing.empty());
}

TEST(RecipeColumns, NameTheLineAndTheColumnOfAMistake) {
  EXPECT_THAT(refusal(kTable + "[data.columns]\na = \"number\"\nb = \"categry\"\ny = \"target\"\n"),
              HasSubstr("r.toml:8: [data.columns] key 'b': a column is"));
  EXPECT_THAT(refusal(kTable + "[data.columns]\na = 3\ny = \"target\"\n"),
              HasSubstr("[data] key 'columns': must be a table of texts, not a table in which 'a' is no text"));
  EXPECT_THAT(refusal(kTable + "[data.columns]\na = \"number\"\na = \"number\"\ny = \"target\"\n"),
              HasSubstr("given twice"));
  EXPECT_THAT(refusal(kTable, {"data.columns={a=\"nmber\",y=\"target\"}"}), HasSubstr("--set data.columns="));
  EXPECT_THAT(refusal(kTable + "columns = \"a\"\n"), HasSubstr("must be a table of texts, not the text \"a\""));
  EXPECT_THAT(refusal(kTable + "slices = [1]\n"), HasSubstr("must be a list of texts, not a list"));
}

TEST(RecipeColumns, EnterTheDigestWhateverTheirOrder) {
  const auto digest = [](const std::string& columns) {
    return recipe_digest(parse_recipe(kTable + "[data.columns]\n" + columns, "r.toml"));
  };
  const std::string one = digest("a = \"number\"\nb = \"category\"\ny = \"target\"\n");
  EXPECT_EQ(digest("y = \"target\"\nb = \"category\"\na = \"number\"\n"), one);
  EXPECT_NE(digest("a = \"category\"\nb = \"category\"\ny = \"target\"\n"), one);
}

TEST(RecipeColumns, FitTheFormatAndTheSplit) {
  const std::string columns = "[data.columns]\na = \"number\"\ny = \"target\"\n";
  EXPECT_THAT(refusal(kTable), HasSubstr("the format csv needs its columns declared"));
  EXPECT_THAT(refusal("[data]\n" + columns), HasSubstr("no other format has any"));
  EXPECT_THAT(refusal(kTable + "[data.columns]\na = \"number\"\n"), HasSubstr("exactly one column is the target"));
  EXPECT_THAT(refusal(kTable + "[data.columns]\ny = \"target\"\n"), HasSubstr("at least one column must be a number"));
  EXPECT_THAT(refusal(kTable + columns + "t = \"time\"\nu = \"time\"\n"), HasSubstr("at most one column is the group"));
  EXPECT_THAT(refusal(kTable + columns, {"data.split=group"}), HasSubstr("a split by group needs a group column"));
  EXPECT_THAT(refusal(kTable + columns, {"data.split=time"}), HasSubstr("one by time a time column"));
  EXPECT_THAT(refusal(kTable + columns, {"data.split=official"}), HasSubstr("needs test_path"));
  EXPECT_THAT(refusal(kTable + columns, {"data.test=0"}), HasSubstr("a csv without test_path needs test above 0"));
  EXPECT_THAT(refusal(kTable + columns, {"data.test_path=x"}), HasSubstr("all others 0"));
  EXPECT_THAT(refusal(kTable + columns, {"data.flip=true"}), HasSubstr("only images can be shifted or flipped"));
  EXPECT_THAT(refusal(kTable + columns, {"data.path="}), HasSubstr("need a path"));
  EXPECT_THAT(refusal("[data]\nsplit = \"random\"\n"), HasSubstr("image files have the split official"));
  EXPECT_THAT(refusal("[data]\npositive = \"yes\"\n"), HasSubstr("belong to the format csv"));
  EXPECT_THAT(refusal(kTable + columns, {"data.resample=balanced", "train.class_weights=balanced"}),
              HasSubstr("use one of them"));
  EXPECT_EQ(refusal(kTable + columns), "accepted");
}

}  // namespace
}  // namespace convoy::spec

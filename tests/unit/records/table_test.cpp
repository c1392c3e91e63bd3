// Tables: declared columns, encoders fitted on the training part, and refusals that name file, line and column.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "convoy/records/open/run_data.h"
#include "convoy/records/table/table_dataset.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

spec::DataRecipe recipe_of(std::map<std::string, std::string> columns) {
  spec::DataRecipe recipe;
  recipe.format = "csv";
  recipe.path = "d/t.csv";
  recipe.split = "random";
  recipe.validation = 1;
  recipe.test = 1;
  recipe.columns = std::move(columns);
  return recipe;
}

void put(Files& files, const std::string& text, const std::string& test = "") {
  files.make_directories("d");
  write_atomic(files, "d/t.csv", text);
  if (!test.empty()) write_atomic(files, "d/test.csv", test);
}

// Opens everything, the test part too, and returns the error.
std::string refusal(const spec::DataRecipe& recipe, const std::string& text, const std::string& test = "") {
  MemoryFiles files;
  put(files, text, test);
  return error_of([&] { open_data(recipe, files, "", false).test(); });
}

std::vector<float> prepared(const Dataset& dataset, std::int64_t sample) {
  std::vector<float> out(static_cast<std::size_t>(dataset.sample_elements()));
  dataset.prepare(sample, {}, out);
  return out;
}

// A file in which all rows are for training, so that every value is known.
struct Whole {
  MemoryFiles files;
  spec::DataRecipe recipe;
  Whole(std::map<std::string, std::string> columns, const std::string& text, const std::string& test)
      : recipe(recipe_of(std::move(columns))) {
    put(files, text, test);
    recipe.split = "official";
    recipe.test_path = "d/test.csv";
    recipe.validation = 0;
    recipe.test = 0;
  }
};

TEST(Table, BecomesNumbersOfMeanZeroAndOneFeatureForEachCategory) {
  Whole data({{"x", "number"}, {"c", "category"}, {"y", "target"}, {"z", "excluded: not known"}},
             "x,c,z,y\n1,b,?,no\n3,a,?,yes\n5,b,?,no\n", "x,c,z,y\n3,a,?,no\n");
  RunData run = open_data(data.recipe, data.files, "", false);
  const Dataset& dataset = run.training_set();
  EXPECT_THAT(dataset.feature_names(), ElementsAre("x", "c = a", "c = b"));
  EXPECT_THAT(dataset.sample_shape(), ElementsAre(3));
  const auto step = static_cast<float>(2.0 / std::sqrt(8.0 / 3.0));
  EXPECT_THAT(prepared(dataset, 0), ElementsAre(-step, 0, 1));
  EXPECT_THAT(prepared(dataset, 1), ElementsAre(0, 1, 0));
  EXPECT_THAT(prepared(dataset, 2), ElementsAre(step, 0, 1));
  EXPECT_THAT(dataset.class_names(), ElementsAre("no", "yes"));
  EXPECT_EQ(dataset.label(1), 1);
  EXPECT_EQ(dataset.positive_class(), 1);
  EXPECT_EQ(dataset.key_of(1), "t.csv line 3");
  EXPECT_THAT(prepared(*run.test().dataset, 0), ElementsAre(0, 1, 0))
      << "the test file takes the training file's encoders";
  EXPECT_EQ(run.test().dataset->key_of(0), "test.csv line 2");
}

TEST(Table, FillsMissingNumbersWithTheMeanAndSaysSo) {
  Whole data({{"x", "number, missing = mean"}, {"c", "category, missing = own"}, {"y", "target"}},
             "x,c,y\n1,,a\nNA,u,b\n3,u,a\n", "x,c,y\n,NA,a\n");
  data.recipe.missing = {"", "NA"};
  RunData run = open_data(data.recipe, data.files, "", false);
  EXPECT_THAT(run.training_set().feature_names(), ElementsAre("x", "x is missing", "c = u", "c is missing"));
  EXPECT_THAT(prepared(run.training_set(), 0), ElementsAre(-1, 0, 0, 1));
  EXPECT_THAT(prepared(run.training_set(), 1), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(prepared(*run.test().dataset, 0), ElementsAre(0, 1, 0, 1));
}

TEST(Table, LeavesAnUnseenCategoryWithoutAFeatureWhereThatIsAllowed) {
  Whole data({{"c", "category, unseen = own"}, {"y", "target"}}, "c,y\na,0\nb,1\n", "c,y\nnew,0\n");
  RunData run = open_data(data.recipe, data.files, "", false);
  EXPECT_THAT(prepared(*run.test().dataset, 0), ElementsAre(0, 0));
}

TEST(Table, RefusesAnUnknownCategoryAtTestTimeNamingItsPlace) {
  const Whole data({{"c", "category"}, {"y", "target"}}, "", "");
  EXPECT_EQ(refusal(data.recipe, "c,y\na,0\nb,1\n", "c,y\na,0\nnew,1\n"),
            "InvalidArgument: d/test.csv line 3, column 'c': 'new' is a category that the training part does not have; "
            "declare \"category, unseen = own\" to allow that");
}

TEST(Table, RefusesALetterInANumberColumnNamingLineAndColumn) {
  const spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"y", "target"}});
  EXPECT_EQ(refusal(recipe, "x,y\n1,0\n2,1\n3x,0\n4,1\n5,0\n"),
            "InvalidArgument: d/t.csv line 4, column 'x': '3x' is no number");
  for (const char* field : {"nan", "inf", "1,5", "0x10", "1e999", "--1", "+-1", "1 2", "e5"}) {
    const std::string text = fmt::format("x,y\n1,0\n2,1\n\"{}\",0\n4,1\n5,0\n", field);
    EXPECT_THAT(refusal(recipe, text), HasSubstr("line 4, column 'x'")) << field;
  }
  for (const char* field : {" 2.5 ", "+3", "-1e-3", ".5"}) {
    const std::string text = fmt::format("x,y\n1,0\n2,1\n\"{}\",0\n4,1\n5,0\n", field);
    EXPECT_EQ(refusal(recipe, text), "no error") << field;
  }
}

TEST(Table, RefusesAMissingValueThatIsNotDeclared) {
  const spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"c", "category"}, {"y", "target"}});
  EXPECT_EQ(
      refusal(recipe, "x,c,y\n1,a,0\n,a,1\n2,a,0\n2,a,0\n2,a,1\n"),
      "InvalidArgument: d/t.csv line 3, column 'x': '' is missing; declare \"number, missing = mean\" to allow that");
  EXPECT_THAT(refusal(recipe, "x,c,y\n1,,0\n2,,1\n2,,0\n2,,0\n"),
              HasSubstr("column 'c': '' is missing; declare \"category, missing = own\""));
  EXPECT_EQ(refusal(recipe, "x,c,y\n1,a,0\n2,a,\n2,a,0\n"),
            "InvalidArgument: d/t.csv line 3, column 'y': '': a target must not be missing");
  EXPECT_THAT(refusal(recipe_of({{"x", "number, missing = mean"}, {"y", "target"}}), "x,y\n,0\n,1\n,0\n,1\n"),
              HasSubstr("column 'x' has no value in the training part"));
}

TEST(Table, NeedsEachColumnDeclaredAndEachDeclaredColumn) {
  const spec::DataRecipe recipe = recipe_of({{"age", "number"}, {"y", "target"}});
  EXPECT_EQ(refusal(recipe, "agee,y\n1,0\n"),
            "InvalidArgument: d/t.csv has no column 'age', which data.columns declares (did you mean 'agee'?)");
  EXPECT_EQ(
      refusal(recipe, "age,job,y\n1,a,0\n"),
      "InvalidArgument: d/t.csv: data.columns does not declare the column 'job'; write \"excluded: REASON\" to leave "
      "it out");
  EXPECT_EQ(refusal(recipe, "age,y\n"), "InvalidArgument: d/t.csv has no row below its header");
  EXPECT_THAT(refusal(recipe, ""), StartsWith("InvalidArgument: d/t.csv line 1: there is no header"));
}

// Found by the fuzzer: a column's name with a line break made two lines of a message.
TEST(Table, SaysEverythingInOneLine) {
  const spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"y\nz", "target"}});
  for (const char* text :
       {"x,\"y\nz\"\n1,0\n2,0\n", "x,\"y\nz\"\n1,\n", "x,\"a\nb\"\n1,2\n", "x,\"y\nz\"\n\"1\n\",0\n2,1\n3,0\n"}) {
    const std::string error = refusal(recipe, text);
    EXPECT_THAT(error, StartsWith("InvalidArgument: d/t.csv")) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Table, MayHaveItsTestFileInAnotherOrderOfColumns) {
  Whole data({{"x", "number"}, {"c", "category"}, {"y", "target"}}, "x,c,y\n-1,a,0\n1,b,1\n", "y,c,x\n1,b,-1\n");
  RunData run = open_data(data.recipe, data.files, "", false);
  EXPECT_THAT(prepared(*run.test().dataset, 0), ElementsAre(-1, 0, 1));
  EXPECT_EQ(run.test().dataset->label(0), 1);
}

TEST(Table, KeepsAClassThatAPartLacks) {
  Whole data({{"x", "number"}, {"y", "target"}}, "x,y\n1,2\n2,10\n3,1\n", "x,y\n1,10\n");
  RunData run = open_data(data.recipe, data.files, "", false);
  EXPECT_THAT(run.training_set().class_names(), ElementsAre("1", "2", "10")) << "integers sort by number";
  EXPECT_EQ(run.test().dataset->classes(), 3);
  EXPECT_EQ(run.test().dataset->label(0), 2);
  EXPECT_THAT(refusal(data.recipe, "x,y\n1,2\n2,10\n", "x,y\n1,10\n5,3\n"),
              HasSubstr("d/test.csv line 3, column 'y': '3' is a class that the training file does not have"));
  EXPECT_THAT(refusal(data.recipe, "x,y\n1,2\n2,2\n", "x,y\n1,2\n"),
              HasSubstr("the target 'y' has one value in all 2 rows"));
}

TEST(Table, RanksThePositiveClassThatTheRecipeNames) {
  Whole data({{"x", "number"}, {"y", "target"}}, "x,y\n1,bad\n2,good\n", "x,y\n1,bad\n");
  data.recipe.positive = "bad";
  EXPECT_EQ(open_data(data.recipe, data.files, "", false).training_set().positive_class(), 0);
  data.recipe.positive = "baad";
  EXPECT_THAT(error_of([&] { open_data(data.recipe, data.files, "", false); }),
              HasSubstr("the target 'y' has the classes \"bad\" and \"good\" (did you mean 'bad'?)"));
  EXPECT_THAT(refusal(data.recipe, "x,y\n1,bad\n2,good\n3,c\n", "x,y\n1,bad\n"),
              HasSubstr("only two have a positive one"));
}

// 40 rows whose validation and test rows can be changed without a change of the split.
std::string forty_rows(const Split& split, const std::string& other_number, const std::string& other_category) {
  std::string text = "x,c,y\n";
  const std::set<std::int64_t> training(split.training.begin(), split.training.end());
  for (std::int64_t row = 0; row < 40; ++row) {
    const bool mine = training.empty() || training.count(row) > 0;
    text += fmt::format("{},{},{}\n", mine ? std::to_string(row * row % 17) : other_number,
                        mine ? (row % 3 == 0 ? "a" : "b") : other_category, row % 2);
  }
  return text;
}

TEST(TableEncoder, IsFittedOnTheTrainingPartAlone) {
  spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"c", "category, unseen = own"}, {"y", "target"}});
  recipe.validation = 9;
  recipe.test = 7;
  MemoryFiles files;
  put(files, forty_rows({}, "", ""));
  RunData plain = open_data(recipe, files, "", false);
  MemoryFiles changed_files;
  put(changed_files, forty_rows(plain.split(), "1e6", "strange"));
  RunData changed = open_data(recipe, changed_files, "", false);
  ASSERT_EQ(changed.split(), plain.split());
  EXPECT_EQ(changed.training_set().feature_names(), plain.training_set().feature_names());
  for (const std::int64_t row : plain.split().training) {
    EXPECT_EQ(prepared(changed.training_set(), row), prepared(plain.training_set(), row)) << row;
  }
  EXPECT_NE(prepared(changed.training_set(), plain.split().validation[0]),
            prepared(plain.training_set(), plain.split().validation[0]));
}

TEST(TableSlices, CutAPartByValuesAndByTime) {
  Whole data({{"x", "number"}, {"c", "category"}, {"t", "time"}, {"y", "target"}},
             "x,c,t,y\n1,a,2024-01-01,0\n2,b,2024-03-01,1\n3,b,2024-02-01,0\n4,a,2024-02-29,1\n5,a,2024-02-01,1\n",
             "x,c,t,y\n1,a,2025-01-01 10:30,0\n");
  const RunData run = open_data(data.recipe, data.files, "", false);
  const std::vector<std::int64_t> part = {4, 0, 1, 2, 3};
  const std::vector<std::string> names = {"c", "t"};
  const auto slices = run.training_set().slices(names, part);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].name, "c");
  EXPECT_THAT(slices[0].values, ElementsAre("a", "b"));
  EXPECT_THAT(slices[0].value_of, ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(slices[1].values, ElementsAre("2024-01-01 to 2024-01-01", "2024-02-01 to 2024-02-01",
                                            "2024-02-29 to 2024-02-29", "2024-03-01 to 2024-03-01"));
  EXPECT_THAT(slices[1].value_of, ElementsAre(1, 0, 3, 1, 2)) << "rows of one moment are in one range";
  data.recipe.slices = {"cc"};
  EXPECT_THAT(error_of([&] { open_data(data.recipe, data.files, "", false); }),
              HasSubstr("data.slices: d/t.csv has no column 'cc'"));
}

TEST(TableSplit, ByTimeTestsOnTheLatest) {
  spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"t", "time"}, {"y", "target"}});
  recipe.split = "time";
  recipe.validation = 2;
  recipe.test = 1;
  std::string text = "x,t,y\n";
  for (const int t : {30, 10, 50, 20, 40, 60}) text += fmt::format("1,{},{}\n", t, t / 10 % 2);
  MemoryFiles files;
  put(files, text);
  RunData run = open_data(recipe, files, "", false);
  EXPECT_THAT(run.test().indexes, ElementsAre(5));
  EXPECT_THAT(run.split().validation, ElementsAre(2, 4));
  EXPECT_THAT(run.split().training, ElementsAre(0, 1, 3));
  EXPECT_THAT(refusal(recipe, "x,t,y\n1,5,0\n1,2024-01-01,1\n1,6,0\n1,7,1\n1,8,1\n"),
              HasSubstr("d/t.csv line 3, column 't': '2024-01-01' is no number, as the times above are"));
  EXPECT_THAT(refusal(recipe, "x,t,y\n1,2024-02-30,0\n1,2024-01-01,1\n"),
              HasSubstr("line 2, column 't': '2024-02-30' is no time"));
}

TEST(TableSplit, ByGroupAndTimeHoldForAnOfficialTestFileToo) {
  Whole groups({{"x", "number"}, {"g", "group"}, {"y", "target"}}, "", "");
  groups.recipe.split = "group";
  EXPECT_THAT(refusal(groups.recipe, "x,g,y\n1,p,0\n2,q,1\n", "x,g,y\n1,r,0\n2,p,1\n"),
              HasSubstr("d/test.csv line 3, column 'g': 'p' is a group of the training file, too"));
  EXPECT_EQ(refusal(groups.recipe, "x,g,y\n1,p,0\n2,q,1\n", "x,g,y\n1,r,0\n"), "no error");
  Whole times({{"x", "number"}, {"t", "time"}, {"y", "target"}}, "", "");
  times.recipe.split = "time";
  EXPECT_THAT(refusal(times.recipe, "x,t,y\n1,1,0\n2,5,1\n", "x,t,y\n1,5,0\n"), HasSubstr("d/test.csv begins before"));
}

TEST(TableSplit, IsRecordedAndAnotherFileOrColumnIsRefused) {
  spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"g", "group"}, {"h", "excluded: x"}, {"y", "target"}});
  recipe.split = "group";
  std::string text = "x,g,h,y\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("{},{},{},{}\n", i, i / 2, i / 3, i % 2);
  recipe.validation = recipe.test = 3;
  MemoryFiles files;
  put(files, text);
  const Split split = open_data(recipe, files, "r/split.json", true).split();
  EXPECT_EQ(open_data(recipe, files, "r/split.json", false).split(), split);
  spec::DataRecipe other = recipe;
  std::swap(other.columns["g"], other.columns["h"]);
  EXPECT_THAT(error_of([&] { open_data(other, files, "r/split.json", true); }),
              HasSubstr("digest of the training set"));
  write_atomic(files, "d/t.csv", text + "12,9,9,0\n");
  EXPECT_THAT(error_of([&] { open_data(recipe, files, "r/split.json", true); }),
              HasSubstr("samples 12 there, 13 here"));
}

TEST(TableSplit, RefusesAnEmptyPart) {
  spec::DataRecipe recipe = recipe_of({{"x", "number"}, {"g", "group"}, {"t", "time"}, {"y", "target"}});
  const std::string text = "x,g,t,y\n1,a,7,0\n2,a,7,1\n3,b,7,0\n4,b,7,1\n";
  recipe.split = "group";
  EXPECT_THAT(refusal(recipe, text), HasSubstr("data.test = 1 gives an empty part: each group has more samples"));
  recipe.split = "time";
  EXPECT_THAT(refusal(recipe, text), HasSubstr("data.test = 1 gives an empty part: more samples have the latest time"));
  recipe.split = "random";
  recipe.validation = 3;
  EXPECT_THAT(refusal(recipe, text), HasSubstr("data.validation = 3 leaves nothing to train on"));
  recipe.test = 4;
  EXPECT_THAT(refusal(recipe, text), HasSubstr("data.test = 4 leaves nothing to train on"));
}

TEST(TableTest, ReadsTheTestFileOnlyWhenItIsAskedFor) {
  Whole data({{"x", "number"}, {"y", "target"}}, "x,y\n1,0\n2,1\n", "this is no table");
  data.files.remove("d/test.csv");
  RunData run = open_data(data.recipe, data.files, "", false);
  EXPECT_EQ(error_of([&] { run.test(); }), "InvalidArgument: there is no file d/test.csv; data.test_path names it");
}

}  // namespace
}  // namespace convoy::records

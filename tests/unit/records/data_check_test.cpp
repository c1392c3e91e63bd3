// The data report: each finding from a planted fault, and silence without one.
#include "convoy/records/check/data_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/records/images/cifar.h"
#include "convoy/records/images/idx.h"
#include "convoy/records/synth/synth.h"
#include "convoy/records/table/schema.h"
#include "tests/unit/records/test_images.h"

namespace convoy::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

spec::DataRecipe table_recipe(std::map<std::string, std::string> columns) {
  spec::DataRecipe recipe;
  recipe.format = "csv";
  recipe.path = "t.csv";
  recipe.split = "random";
  recipe.validation = 60;
  recipe.test = 60;
  recipe.columns = std::move(columns);
  return recipe;
}

// 300 rows: x says a little about the class, `leak` says all, `id` counts, g groups rows by twos.
std::string table_text() {
  std::string text = "id,x,leak,g,y\n";
  for (int i = 0; i < 300; ++i) {
    const int label = i * 7 % 3 == 0 ? 1 : 0;
    text += fmt::format("{},{},{},{},{}\n", i + 1000, (i * 37 % 101) / 7.0 + label + i * 1e-5, label == 1 ? "p" : "q",
                        i / 2, label);
  }
  return text;
}

DataReport report_of(const spec::DataRecipe& recipe, const std::string& text) {
  MemoryFiles files;
  write_atomic(files, "t.csv", text);
  return check_data(recipe, files);
}

const std::map<std::string, std::string> kSound = {{"id", "excluded: names a row"},
                                                   {"x", "number"},
                                                   {"leak", "excluded: known afterwards"},
                                                   {"g", "excluded: -"},
                                                   {"y", "target"}};

TEST(DataCheck, FindsNothingInSoundDataAndNotesWhatIsExcludedForGoodReason) {
  const DataReport report = report_of(table_recipe(kSound), table_text());
  EXPECT_THAT(report.findings, IsEmpty());
  ASSERT_EQ(report.parts.size(), 3u);
  EXPECT_EQ(report.parts[0].samples, 180);
  EXPECT_EQ(report.parts[0].class_counts[0] + report.parts[1].class_counts[0] + report.parts[2].class_counts[0], 200);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("column 'leak' is excluded (known afterwards)")));
}

TEST(DataCheck, FindsALeakAndAnIdentifier) {
  auto columns = kSound;
  columns["leak"] = "category";
  columns["id"] = "number";
  const DataReport report = report_of(table_recipe(columns), table_text());
  EXPECT_THAT(report.findings, ElementsAre(HasSubstr("column 'id' has a value of its own in nearly each row"),
                                           HasSubstr("column 'leak' alone tells a class with ROC AUC 1.0000")));
  for (const ColumnReport& column : report.columns) {
    if (column.name == "leak") {
      EXPECT_EQ(column.auc, 1.0);
    }
    if (column.name == "x") {
      EXPECT_LT(column.auc, 0.8);
    }
  }
}

TEST(DataCheck, DoesNotTakeACategoryThatIsUniqueToEachRowForALeak) {
  auto columns = kSound;
  columns["id"] = "category, unseen = own";
  const DataReport report = report_of(table_recipe(columns), table_text());
  EXPECT_THAT(report.findings, ElementsAre(HasSubstr("column 'id' has a value of its own")));
}

TEST(DataCheck, FindsGroupsInSeveralPartsUnlessTheSplitKeepsThemTogether) {
  auto columns = kSound;
  columns["g"] = "group";
  spec::DataRecipe recipe = table_recipe(columns);
  const DataReport random = report_of(recipe, table_text());
  EXPECT_GT(random.groups_across, 10);
  EXPECT_THAT(random.findings, ElementsAre(HasSubstr("groups of column 'g' are in more than one part")));
  recipe.split = "group";
  EXPECT_EQ(report_of(recipe, table_text()).groups_across, 0);
}

TEST(DataCheck, FindsDuplicatesInsideAndAcrossParts) {
  auto columns = kSound;
  spec::DataRecipe recipe = table_recipe(columns);
  std::string text = table_text();
  for (int i = 0; i < 40; ++i) text += fmt::format("{},777.5,q,0,0\n", i);  // equal but for excluded columns
  const DataReport report = report_of(recipe, text);
  std::int64_t inside = 0;
  for (const PartReport& part : report.parts) inside += part.duplicates;
  EXPECT_GT(report.duplicates_across, 0);
  EXPECT_EQ(inside + report.duplicates_across, 39);
  EXPECT_THAT(report.findings, ElementsAre(HasSubstr("have an equal one in an earlier part, for example t.csv line ")));
}

TEST(DataCheck, FindsAPartThatNearlyLacksAClass) {
  std::string text = table_text();
  for (int i = 0; i < 4; ++i) text += fmt::format("{},{},q,0,2\n", i, 300.5 + i);
  const DataReport report = report_of(table_recipe(kSound), text);
  ASSERT_EQ(report.classes.size(), 3u);
  EXPECT_THAT(report.findings, testing::Contains(HasSubstr("training nearly lacks classes: 2 (")));
}

TEST(DataCheck, CountsMissingValues) {
  spec::DataRecipe recipe =
      table_recipe({{"x", "number, missing = mean"}, {"c", "category, missing = own"}, {"y", "target"}});
  recipe.missing = {"", "NA"};
  recipe.validation = recipe.test = 20;
  std::string text = "x,c,y\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{},{}\n", i % 10 == 0 ? "NA" : std::to_string(i), i % 25 == 0 ? "" : "a", i % 2);
  const DataReport report = report_of(recipe, text);
  EXPECT_EQ(report.columns.at(0).missing, 10);
  EXPECT_EQ(report.columns.at(1).missing, 4);
}

TEST(DataCheck, FindsATestImageThatIsTrainedOn) {
  MemoryFiles files;
  ImageSet training = synth_images(3, 32, 0, 200, 1);
  ImageSet test = synth_images(3, 32, 200, 150, 1);
  write_cifar(files, "c", training, test);
  spec::DataRecipe recipe;
  recipe.format = "cifar10";
  recipe.path = "c";
  recipe.validation = 0;
  EXPECT_EQ(check_data(recipe, files).duplicates_across, 0);
  std::copy_n(training.pixels.begin() + 7 * 3072, 3072, test.pixels.begin() + 3 * 3072);
  test.labels[3] = training.labels[7];
  write_cifar(files, "c", training, test);
  const DataReport report = check_data(recipe, files);
  EXPECT_EQ(report.duplicates_across, 1);
  EXPECT_THAT(report.findings,
              testing::Contains(HasSubstr("data_batch_1.bin record 7 (training) and test_batch.bin record 3 (test)")));
}

TEST(DataCheck, IsOneJsonObject) {
  const auto json = nlohmann::json::parse(to_json(report_of(table_recipe(kSound), table_text())));
  EXPECT_EQ(json.at("ok"), true);
  EXPECT_EQ(json.at("parts").at(1).at("name"), "validation");
}

TEST(Synth, WritesTheBankTableInItsOfficialSpelling) {
  MemoryFiles files;
  synth_bank(files, "b", {4000, 1, 3});
  const std::string text = files.read("b/bank-additional-full.csv");
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "\"age\";\"job\";\"marital\";\"education\";\"default\";\"housing\";\"loan\";\"contact\";\"month\";"
            "\"day_of_week\";\"duration\";\"campaign\";\"pdays\";\"previous\";\"poutcome\";\"emp.var.rate\";"
            "\"cons.price.idx\";\"cons.conf.idx\";\"euribor3m\";\"nr.employed\";\"y\"");
  const CsvTable table = parse_csv(text, "b", ';');
  ASSERT_EQ(table.rows(), 4000);
  std::int64_t yes = 0;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    yes += table.field(row, 20) == "yes" ? 1 : 0;
    number_at(table, row, 0);
    number_at(table, row, 10);
    number_at(table, row, 18);
  }
  EXPECT_GT(yes, 400);
  EXPECT_LT(yes, 500);
  MemoryFiles again;
  synth_bank(again, "b", {4000, 1, 3});
  EXPECT_EQ(again.read("b/bank-additional-full.csv"), text);
  synth_bank(again, "b", {4000, 1, 4});
  EXPECT_NE(again.read("b/bank-additional-full.csv"), text);
}

TEST(Synth, WritesImagesThatTheReadersTakeAndNoImageTwice) {
  MemoryFiles files;
  synth_idx(files, "i", {60, 20, 1});
  EXPECT_EQ(load_train(files, "i").count, 60);
  EXPECT_EQ(load_test(files, "i").count, 20);
  EXPECT_TRUE(files.exists("i/train-images-idx3-ubyte.gz"));
  synth_cifar10(files, "c", {52, 20, 1});
  EXPECT_EQ(load_cifar_train(files, "c").count, 52);
  EXPECT_EQ(files.size("c/data_batch_1.bin") % 3073, 0u);
  EXPECT_NE(load_cifar_train(files, "c").image(0)[0], load_cifar_test(files, "c").image(0)[0]);
}

// Not trivial: the nearest mean image errs often. Learnable: it is far better than chance all the same.
TEST(Synth, MakesImagesThatAMeanImageHalfTellsApart) {
  const ImageSet training = synth_images(1, 28, 0, 1500, 1);
  const ImageSet test = synth_images(1, 28, 1500, 400, 1);
  std::vector<std::vector<double>> means(10, std::vector<double>(784, 0.0));
  std::vector<double> counts(10, 0.0);
  for (std::int64_t i = 0; i < training.count; ++i) {
    const std::size_t label = training.labels[static_cast<std::size_t>(i)];
    counts[label] += 1.0;
    for (std::size_t at = 0; at < 784; ++at) means[label][at] += training.image(i)[at];
  }
  int right = 0;
  for (std::int64_t i = 0; i < test.count; ++i) {
    double best = 1e300;
    std::size_t found = 0;
    for (std::size_t label = 0; label < 10; ++label) {
      double distance = 0.0;
      for (std::size_t at = 0; at < 784; ++at) {
        const double difference = test.image(i)[at] - means[label][at] / counts[label];
        distance += difference * difference;
      }
      if (distance < best) {
        best = distance;
        found = label;
      }
    }
    right += found == test.labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  EXPECT_GT(right, 120) << "of 400";
  EXPECT_LT(right, 380) << "of 400";
}

}  // namespace
}  // namespace convoy::records

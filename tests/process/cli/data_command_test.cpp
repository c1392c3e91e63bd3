// `convoy data` as a user runs it, and the one line that bad data ends with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/base/files.h"
#include "tests/support/command.h"
#include "tests/support/processes.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipes = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes";

class DataCommand : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  CommandResult data(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {kConvoy, "data"});
    return testing::run_command(arguments);
  }

  CommandResult check_bank(const std::string& file, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"check", kRecipes + "/bank.toml", "--set", "data.path=" + path(file),
                                          "--set", "data.validation=300",   "--set", "data.test=300"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return data(arguments);
  }

  // Replaces the first occurrence in the bank table.
  void change_bank(const std::string& from, const std::string& to) const {
    std::string text = local_files().read(path("bank/bank-additional-full.csv"));
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    write_atomic(local_files(), path("bank/bank-additional-full.csv"), text);
  }

  void make(const std::string& kind, const std::string& folder, const std::string& samples = "2000") const {
    const auto made = data({"synth", kind, "--out", path(folder), "--samples", samples, "--test-samples", "100"});
    ASSERT_EQ(made.status, 0) << made.errors;
  }

  // Expects status 2 and exactly one line on standard error, and returns it.
  static std::string one_line(const CommandResult& result) {
    EXPECT_EQ(result.status, 2) << result.output << result.errors;
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
    EXPECT_THAT(result.errors, StartsWith("convoy: "));
    return result.errors;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DataCommand, MakesABankTableInWhichTheExampleRecipeFindsNothing) {
  make("bank", "bank");
  const auto result = check_bank("bank/bank-additional-full.csv", {"--json", "--strict"});
  EXPECT_EQ(result.status, 0) << result.output << result.errors;
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json.at("ok"), true) << result.output;
  EXPECT_EQ(json.at("parts").at(0).at("samples"), 1400);
  EXPECT_THAT(json.at("notes").dump(), HasSubstr("column 'duration' is excluded"));
}

TEST_F(DataCommand, FindsTheLeakOfTheBankTableAndIsStrictOnlyWhenAsked) {
  make("bank", "bank");
  const std::string leak =
      "data.columns={" + std::string(R"(age="number",job="excluded: x",marital="excluded: x",)") +
      R"(education="excluded: x",default="excluded: x",housing="excluded: x",loan="excluded: x",)" +
      R"(contact="category",month="category",day_of_week="category",duration="number",)" +
      R"(campaign="number",pdays="number",previous="number",poutcome="category",)" +
      R"("emp.var.rate"="number","cons.price.idx"="number","cons.conf.idx"="number",)" +
      R"(euribor3m="number","nr.employed"="number",y="target"})";
  const auto kind = check_bank("bank/bank-additional-full.csv", {"--set", leak});
  EXPECT_EQ(kind.status, 0) << kind.errors;
  EXPECT_THAT(kind.output, HasSubstr("found: column 'duration' alone tells a class with ROC AUC 0.9"));
  EXPECT_EQ(check_bank("bank/bank-additional-full.csv", {"--set", leak, "--strict"}).status, 1);
}

TEST_F(DataCommand, MakesImagesThatTheRecipesOfTheirFormatRead) {
  make("cifar10", "cifar", "100");
  const auto cifar = data({"check", kRecipes + "/cifar10.toml", "--set", "data.path=" + path("cifar"), "--set",
                           "data.validation=20", "--json"});
  EXPECT_EQ(cifar.status, 0) << cifar.errors;
  EXPECT_EQ(nlohmann::json::parse(cifar.output).at("features"), 3072);
  make("idx", "idx", "100");
  const auto idx = data({"check", kRecipes + "/fashion_softmax.toml", "--set", "data.path=" + path("idx"), "--set",
                         "data.validation=20", "--set", "data.limit=0"});
  EXPECT_EQ(idx.status, 0) << idx.errors;
}

TEST_F(DataCommand, DividesOnceAndReadsTheRecordAfterwards) {
  make("bank", "bank");
  const std::vector<std::string> arguments = {
      "split", kRecipes + "/bank.toml", "--set", "data.path=" + path("bank/bank-additional-full.csv"),
      "--set", "data.validation=300",   "--set", "data.test=200",
      "--out", path("split.json"),      "--json"};
  const auto first = nlohmann::json::parse(data(arguments).output);
  EXPECT_EQ(first.at("made"), true);
  EXPECT_EQ(first.at("training"), 1500);
  EXPECT_EQ(first.at("test"), 200);
  const std::string record = local_files().read(path("split.json"));
  EXPECT_EQ(nlohmann::json::parse(data(arguments).output).at("made"), false);
  EXPECT_EQ(local_files().read(path("split.json")), record);
}

TEST_F(DataCommand, NamesACifarFileOfTheWrongSize) {
  make("cifar10", "cifar", "100");
  local_files().append(path("cifar/data_batch_3.bin"), "x");
  const std::string line = one_line(data({"check", kRecipes + "/cifar10.toml", "--set", "data.path=" + path("cifar")}));
  EXPECT_THAT(line, HasSubstr("data_batch_3.bin is no batch of CIFAR-10: expected a multiple of 3073 bytes"));
  EXPECT_THAT(line, HasSubstr("found 61461 (20 records and 1 bytes)"));
}

TEST_F(DataCommand, NamesLineAndColumnOfALetterInANumberColumn) {
  make("bank", "bank");
  change_bank(";1.1;", ";1.1e;");
  EXPECT_THAT(one_line(check_bank("bank/bank-additional-full.csv")),
              HasSubstr("bank-additional-full.csv line 2, column 'emp.var.rate': '1.1e' is no number"));
}

TEST_F(DataCommand, NamesAMissingColumn) {
  make("bank", "bank");
  change_bank("\"campaign\"", "\"campain\"");
  EXPECT_THAT(one_line(check_bank("bank/bank-additional-full.csv")),
              HasSubstr("has no column 'campaign', which data.columns declares (did you mean 'campain'?)"));
}

TEST_F(DataCommand, NamesAnUnknownCategoryAtTestTime) {
  make("bank", "bank");
  local_files().make_directories(path("test"));
  std::string test = local_files().read(path("bank/bank-additional-full.csv"));
  test.resize(test.find('\n', test.find('\n') + 1) + 1);  // header and one row
  const auto contact = test.find("\"cellular\"") == std::string::npos ? "\"telephone\"" : "\"cellular\"";
  test.replace(test.find(contact), std::string(contact).size(), "\"pigeon\"");
  write_atomic(local_files(), path("test/test.csv"), test);
  const std::string line =
      one_line(check_bank("bank/bank-additional-full.csv", {"--set", "data.test_path=" + path("test/test.csv"), "--set",
                                                            "data.test=0", "--set", "data.split=official"}));
  EXPECT_THAT(line,
              HasSubstr("test.csv line 2, column 'contact': 'pigeon' is a category that the training part does not"));
}

TEST_F(DataCommand, NamesAnEmptySplit) {
  make("bank", "bank", "500");
  EXPECT_THAT(one_line(check_bank("bank/bank-additional-full.csv", {"--set", "data.test=500"})),
              HasSubstr("data.test = 500 leaves nothing to train on"));
  EXPECT_THAT(one_line(check_bank("bank/bank-additional-full.csv", {"--set", "data.validation=200"})),
              HasSubstr("data.validation = 200 leaves nothing to train on"));
}

TEST_F(DataCommand, SaysWhatItsActionsTakeAndRefusesOthers) {
  for (const char* action : {"check", "synth", "split"}) {
    const auto help = data({action, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.output, HasSubstr("Example:\n  convoy data " + std::string(action)));
    EXPECT_THAT(help.errors, IsEmpty());
  }
  one_line(data({}));
  one_line(data({"chek", "x"}));
  one_line(data({"synth", "mnist", "--out", path("x")}));
  one_line(data({"synth", "bank", "--out", path("x"), "--samples", "0"}));
  EXPECT_THAT(one_line(data({"check", "nowhere.toml"})), HasSubstr("there is no recipe nowhere.toml"));
}

}  // namespace
}  // namespace convoy

// The bank recipe on a synthetic table: equal metrics to the last digit on any number of ranks, and equal to what its own
// predictions give.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/eval/ranked.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/bank.toml";

class BankTable : public ::testing::Test {
 protected:
  BankTable() {
    const CommandResult made = testing::run_command({kConvoy, "data", "synth", "bank", "--out", folder_.path(),
                                                     "--samples", "1501", "--seed", "3"});
    EXPECT_EQ(made.status, 0) << made.errors;
  }

  std::string run_folder(int ranks) const { return folder_.path() + "/run-" + std::to_string(ranks); }

  json train(int ranks, const std::vector<std::string>& sets = {}) const {
    std::vector<std::string> arguments{kConvoy, "run", kRecipe, "-n", std::to_string(ranks), "--json", "--quiet",
                                       "--out", run_folder(ranks)};
    std::vector<std::string> all{"data.path=" + folder_.path() + "/bank-additional-full.csv", "data.validation=301",
                                 "data.test=303", "train.epochs=3", "train.evaluation_batch=50"};
    all.insert(all.end(), sets.begin(), sets.end());
    for (const std::string& set : all) arguments.insert(arguments.end(), {"--set", set});
    const CommandResult done = testing::run_command(arguments);
    EXPECT_EQ(done.status, 0) << done.errors;
    return json::parse(done.output, nullptr, false);
  }

  // The ranking of the scores that a run wrote down.
  eval::RankedCurve predictions(int ranks) const {
    eval::RankedOutcomes outcomes;
    std::ifstream file(run_folder(ranks) + "/predictions.csv");
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "sample,truth,predicted,score");
    while (std::getline(file, line)) {
      const std::size_t score = line.rfind(',');
      const std::size_t truth = line.find(',');
      outcomes.add(std::stod(line.substr(score + 1)), line.substr(truth + 1, 3) == "yes");
    }
    return outcomes.curve();
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(BankTable, GivesTheSameMetricsToTheLastDigitOnOneTwoAndThreeRanks) {
  const std::vector<std::string> longer{"train.epochs=8"};
  const json alone = train(1, longer);
  ASSERT_TRUE(alone.is_object());
  for (const int ranks : {2, 3}) {
    const json more = train(ranks, longer);
    EXPECT_EQ(more["parameters_digest"], alone["parameters_digest"]) << ranks << " ranks";
    EXPECT_EQ(more["quality"], alone["quality"]) << ranks << " ranks";
    EXPECT_EQ(more["validation"], alone["validation"]) << ranks << " ranks";
  }
  const json& binary = alone["quality"]["binary"];
  EXPECT_GT(binary["roc_auc"], 0.7) << "something was learnt";
  const eval::RankedCurve curve = predictions(1);
  EXPECT_EQ(curve.positives() + curve.negatives(), 303);
  EXPECT_EQ(binary["roc_auc"], *curve.roc_auc());
  EXPECT_EQ(binary["pr_auc"], *curve.pr_auc());
  const double threshold = binary["threshold"];
  EXPECT_EQ(binary["threshold"], alone["validation"]["binary"]["threshold"]) << "chosen on the validation part";
  EXPECT_EQ(binary["precision"], curve.at(threshold).precision());
  EXPECT_EQ(binary["recall"], curve.at(threshold).recall());
  EXPECT_EQ(binary["f1"], curve.at(threshold).f1());
}

TEST_F(BankTable, ResamplingAndClassWeightsDoNotDependOnRanks) {
  const json alone = train(1, {"data.resample=balanced", "train.class_weights=none"});
  const json three = train(3, {"data.resample=balanced", "train.class_weights=none"});
  EXPECT_EQ(three["parameters_digest"], alone["parameters_digest"]);
  EXPECT_NE(train(2)["parameters_digest"], alone["parameters_digest"]) << "weights and draws are not the same thing";
  EXPECT_EQ(alone["ledger"]["repeated"], 0);
  EXPECT_EQ(alone["ledger"]["missing"], 0);
  std::ifstream file(run_folder(3) + "/evaluation.jsonl");
  std::string line;
  int epochs = 0;
  while (std::getline(file, line)) {
    const json row = json::parse(line);
    if (row["part"] != "training") continue;
    ++epochs;
    const std::int64_t no = row["classes"][0]["drawn"];
    const std::int64_t yes = row["classes"][1]["drawn"];
    EXPECT_EQ(no + yes, 897);
    EXPECT_LE(std::abs(no - yes), 1) << "classes are drawn alike";
  }
  EXPECT_EQ(epochs, 3);
}

TEST_F(BankTable, ATestPartOfOneClassHasNoRocAuc) {
  const json result = train(2, {"data.split=random", "data.test=1"});
  ASSERT_EQ(result["quality"]["samples"], 1);
  EXPECT_TRUE(result["quality"]["binary"]["roc_auc"].is_null());
}

}  // namespace
}  // namespace convoy

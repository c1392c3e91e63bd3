// `convoy explain` as a user runs it: a step in order, the training plan, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/processes.h"

namespace convoy {
namespace {

using testing::CommandResult;
using ::testing::HasSubstr;
using testing::lines_of;
using ::testing::Not;
using testing::read_text;
using testing::write_text;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kExamples = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/";

// A folder with a recipe of four replicas whose data are not there, and an earlier run of the same model.
class ExplainCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(
        path("recipe.toml"),
        "[task]\nname = \"small\"\n[data]\npath = \"nowhere\"\n[replicas]\ncount = 4\n[train]\nglobal_batch = 64\n"
        "[parallel]\nbucket_bytes = 4194304\n");
    std::filesystem::create_directories(path("run"));
    write_text(path("run/recipe.toml"), read_text(path("recipe.toml")));
    write_text(path("run/summary.json"),
               R"({"ok": true, "ranks": 1, "step_ms": {"median": 12.5}, "samples_per_s": 5120,
                   "quality": {"accuracy": 0.75}, "peak_memory_bytes": {"parameters": 40000}})");
  }

  CommandResult explain(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"/usr/bin/env", "-C", folder_.path(), kConvoy, "explain"});
    return testing::run_command(arguments);
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& words, int status = 2) const {
    const CommandResult finished = explain(arguments);
    EXPECT_EQ(finished.status, status) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(words));
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }

  testing::TemporaryFolder folder_;
};

TEST_F(ExplainCommand, TellsAStepInOrder) {
  const CommandResult finished = explain({"recipe.toml", "-n", "3"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_EQ(finished.errors, "");
  std::size_t at = 0;
  for (const char* words :
       {"One training step of small on 3 ranks, 4 replicas",
        "Global batch: 4 replicas x micro-batch 16 x accumulation 1 = 64", "group world: ranks 0 to 2",
        "group host 0: ranks 0 to 2", "0 to 1", "input:", "forward and backward:", "exchange of gradients:",
        "buckets of about 4.0 MiB (recipe)", "exchange of facts:", "update:", "barrier:", "record:", "rank 0  0FF",
        "Price of reproducibility", "Aligned splits of 4 replicas: 1, 2, 4 ranks", "a lost rank ends the run",
        "Strategy: data, divided update", "--parameters N"}) {
    const std::size_t found = finished.output.find(words, at);
    ASSERT_NE(found, std::string::npos) << words << " is missing or too early in\n" << finished.output;
    at = found;
  }
  EXPECT_FALSE(exists("plan.md"));
}

TEST_F(ExplainCommand, TakesTheParametersOfAnEarlierRun) {
  const auto given =
      nlohmann::json::parse(explain({"recipe.toml", "-n", "2", "--parameters", "10000", "--json"}).output);
  const auto found = nlohmann::json::parse(explain({"recipe.toml", "-n", "2", "--baseline", "run", "--json"}).output);
  EXPECT_EQ(given["gradient_bytes"], 40000);
  // 10000 numbers are three blocks, two of which rank 0 sums and updates.
  EXPECT_EQ(given["shares"][0]["sent_bytes"], 4 * (10000 - 8192));
  EXPECT_EQ(given["shares"][1]["sent_bytes"], 4 * 8192);
  EXPECT_EQ(given["shares"][0]["updated_parameters"], 8192);
  EXPECT_EQ(given["exchanges"][0]["algorithm"], "ordered_exchange");
  EXPECT_EQ(given["card"]["form"], "divided update");
  EXPECT_EQ(given["picture"]["rows"].size(), 2u);
  EXPECT_EQ(found, given);
}

TEST_F(ExplainCommand, FollowsTheKeysThatDivideTheUpdate) {
  const std::string whole = explain({"recipe.toml", "-n", "2", "--set", "parallel.divide_update=false"}).output;
  EXPECT_THAT(whole, HasSubstr("each by all_reduce ordered_exchange"));
  EXPECT_THAT(whole, Not(HasSubstr("barrier")));
  const std::string hosts = explain({"recipe.toml", "-n", "4", "--set", "comm.hosts=['a', 'a', 'b', 'b']"}).output;
  EXPECT_THAT(hosts, HasSubstr("group host 1: ranks 2, 3; parameters lie once in its memory"));
  expect_refused({"recipe.toml", "-n", "3", "--set", "comm.hosts=['a', 'b']"},
                 "comm.hosts names a host for each of 2 ranks");
}

TEST_F(ExplainCommand, DrawsThePictureIntoAFile) {
  const CommandResult finished = explain({"recipe.toml", "-n", "2", "--picture", "step.svg"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_THAT(finished.output, HasSubstr("The picture is in step.svg\n"));
  const std::string svg = read_text(path("step.svg"));
  EXPECT_THAT(svg, ::testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, HasSubstr("One step of small on 2 ranks"));
  // An earlier picture is written over, nothing else is.
  const auto json =
      nlohmann::json::parse(explain({"recipe.toml", "-n", "3", "--picture", "step.svg", "--json"}).output);
  EXPECT_EQ(json["file"], "step.svg");
  EXPECT_THAT(read_text(path("step.svg")), HasSubstr("on 3 ranks"));
  write_text(path("step.svg"), "<svg>my own</svg>");
  expect_refused({"recipe.toml", "--picture", "step.svg"}, "step.svg is there and is no picture of convoy explain");
  EXPECT_EQ(read_text(path("step.svg")), "<svg>my own</svg>");
  expect_refused({"recipe.toml", "--picture", "-"}, "--picture needs the name of a file");
  expect_refused({"recipe.toml", "--picture", "a.svg", "--document"}, "use one of them");
  expect_refused({"recipe.toml", "--picture", "nowhere/a.svg"}, "nowhere/a.svg", 4);
}

TEST_F(ExplainCommand, WritesThePlanAndSaysWhatIsOpen) {
  const CommandResult finished = explain({"recipe.toml", "-n", "2", "--document", "--baseline", "run"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_THAT(finished.output, HasSubstr("plan.md: 8 open\n"));
  EXPECT_THAT(finished.output, HasSubstr("open: source (task.source)\n"));
  const std::string page = read_text(path("plan.md"));
  for (const char* title : {"Open", "Task", "Features", "Encoding", "Splits", "Division of work", "Sampling",
                            "Model and training", "Baseline", "Metrics", "Recovery"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\n## ") + title + "\n"));
  }
  for (const char* words :
       {"# Training plan: small\n", "- source: declare `task.source`", "run on 1 rank, median step 12.50 ms",
        "accuracy 0.7500", "| 1 | 2 to 3 | 32 | 16 to 16 |", "nowhere"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
}

TEST_F(ExplainCommand, WritesThePlanWhereItIsTold) {
  EXPECT_EQ(explain({"recipe.toml", "--document", "--out", "deep.md"}).status, 0);
  EXPECT_THAT(read_text(path("deep.md")), HasSubstr("any number from 1 to 4"));
  const CommandResult shown = explain({"recipe.toml", "--document", "--out", "-"});
  EXPECT_EQ(shown.output, read_text(path("deep.md")));
  EXPECT_FALSE(exists("plan.md"));
  const auto json = nlohmann::json::parse(explain({"recipe.toml", "--document", "--json"}).output);
  EXPECT_EQ(json["file"], "plan.md");
  EXPECT_EQ(json["open"].size(), 8u);
}

TEST_F(ExplainCommand, ReplacesAnEarlierPlanAndNothingElse) {
  ASSERT_EQ(explain({"recipe.toml", "--document"}).status, 0);
  ASSERT_EQ(explain({"recipe.toml", "--document", "--set", "task.source=a shop"}).status, 0);
  EXPECT_THAT(read_text(path("plan.md")), HasSubstr("- **source**: a shop\n"));
  write_text(path("plan.md"), "my own notes");
  expect_refused({"recipe.toml", "--document"}, "plan.md is there and is no plan of convoy explain");
  EXPECT_EQ(read_text(path("plan.md")), "my own notes");
}

TEST_F(ExplainCommand, RefusesWhatItCannotExplain) {
  write_text(path("bad.toml"), "[train]\nlearning_rat = 0.1\n");
  expect_refused({"bad.toml"}, "bad.toml:2: [train] key 'learning_rat': unknown key (did you mean 'learning_rate'?)");
  expect_refused({"bad.toml", "--document"}, "did you mean 'learning_rate'?");
  expect_refused({"absent.toml"}, "there is no recipe absent.toml");
  expect_refused({"recipe.toml", "-n", "5"}, "5 ranks cannot share 4 replicas");
  expect_refused({"recipe.toml", "-n", "0"}, "a job needs at least 1 rank");
  expect_refused({"recipe.toml", "--parameters", "0"}, "--parameters must be at least 1");
  expect_refused({"recipe.toml", "--out", "x.md"}, "--out names the page of --document");
  expect_refused({"recipe.toml", "--document", "--out", "-", "--json"}, "both ask for standard output");
  expect_refused({"recipe.toml", "--baseline", "nowhere"}, "there is no finished run in it");
  expect_refused({"recipe.toml", "--baseline", "run", "--set", "model.name=mlp"}, "trained another model");
  expect_refused({"recipe.toml", "--documents"}, "did you mean '--document'?");
  EXPECT_FALSE(exists("plan.md"));
}

TEST_F(ExplainCommand, ADamagedBaselineIsNamed) {
  write_text(path("run/summary.json"), "{");
  expect_refused({"recipe.toml", "--baseline", "run"}, "run/summary.json is not a JSON object", 4);
}

TEST_F(ExplainCommand, ExamplesHaveNothingOpen) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    if (entry.path().extension() != ".toml") continue;
    const CommandResult finished = explain({entry.path().string(), "--document"});
    EXPECT_EQ(finished.status, 0) << finished.errors;
    EXPECT_EQ(finished.output, "plan.md: nothing open\n") << entry.path();
    ++recipes;
  }
  EXPECT_GE(recipes, 3);
}

}  // namespace
}  // namespace convoy

// What a user sees when something is wrong: one clear line, the right status, nothing left running.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/elastic/checkpoint/safetensors.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using testing::CommandResult;
using testing::run_command;
using testing::TemporaryFolder;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";
const std::string kRecipe = std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_softmax.toml";

CommandResult run(const TemporaryFolder& folder, std::vector<std::string> more, int ranks = 2,
                  std::map<std::string, std::string> environment = {}) {
  std::vector<std::string> arguments{kConvoy,
                                     "run",
                                     kRecipe,
                                     "-n",
                                     std::to_string(ranks),
                                     "--out",
                                     folder.path() + "/out",
                                     "--set",
                                     "data.limit=1000",
                                     "--set",
                                     "train.steps=30"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  environment["CONVOY_TEST_MARK"] = folder.path();
  return run_command(arguments, environment);
}

// Processes whose environment carries this test's mark.
int processes_of(const TemporaryFolder& folder) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (text.find("CONVOY_TEST_MARK=" + folder.path() + '\0') != std::string::npos) ++found;
  }
  return found;
}

// The lines of standard error that speak of an error: exactly one is wanted.
void expect_one_line(const CommandResult& result, const std::vector<std::string>& words) {
  std::string last = result.errors;
  while (!last.empty() && last.back() == '\n') last.pop_back();
  last = last.substr(last.rfind('\n') == std::string::npos ? 0 : last.rfind('\n') + 1);
  for (const std::string& word : words)
    EXPECT_NE(last.find(word), std::string::npos) << word << " is not in:\n" << result.errors;
}

TEST(Failures, NameAMisspeltKeyBeforeAnyRankStarts) {
  const TemporaryFolder folder;
  std::string recipe = local_files().read(kRecipe);
  const std::string path = folder.path() + "/wrong.toml";
  recipe.replace(recipe.find("learning_rate"), std::string("learning_rate").size(), "learning_rat");
  const std::string_view text(recipe);
  local_files().write(path, std::span(&text, 1));
  const CommandResult result = run_command({kConvoy, "run", path, "-n", "2", "--out", folder.path() + "/out"});
  EXPECT_EQ(result.status, 2);
  expect_one_line(result, {"wrong.toml:", "[train]", "learning_rat", "learning_rate"});
  EXPECT_FALSE(local_files().exists(folder.path() + "/out"));
}

TEST(Failures, NameAMissingDataFile) {
  const TemporaryFolder folder;
  const CommandResult result = run(folder, {"--set", "data.path=" + folder.path() + "/nowhere"});
  EXPECT_EQ(result.status, 2);
  expect_one_line(result, {folder.path() + "/nowhere"});
}

TEST(Failures, NameATruncatedFile) {
  const TemporaryFolder folder;
  const std::string data = folder.path() + "/data";
  std::filesystem::create_directory(data);
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/datasets/fashion-mnist")) {
    std::filesystem::copy(std::filesystem::canonical(entry.path()), data / entry.path().filename());
  }
  const std::string images = data + "/train-images-idx3-ubyte.gz";
  std::filesystem::resize_file(images, 100000);
  const CommandResult result = run(folder, {"--set", "data.path=" + data});
  EXPECT_EQ(result.status, 2) << result.errors;
  expect_one_line(result, {"train-images-idx3-ubyte.gz"});
  EXPECT_EQ(processes_of(folder), 0);
}

TEST(Failures, RefuseNoRanksAndMoreRanksThanReplicas) {
  const TemporaryFolder folder;
  const CommandResult none = run(folder, {}, 0);
  EXPECT_EQ(none.status, 2);
  expect_one_line(none, {"-n"});
  const CommandResult many = run(folder, {"--set", "replicas.count=4"}, 5);
  EXPECT_EQ(many.status, 2);
  expect_one_line(many, {"5 ranks", "4 replicas"});
}

TEST(Failures, StopAllRanksInTheStepOfANotANumber) {
  const TemporaryFolder folder;
  const CommandResult result = run(folder, {"--set", "replicas.count=2"}, 2, {{"CONVOY_PLANT", "nan:rank=1,step=5"}});
  EXPECT_EQ(result.status, 1) << result.errors;
  expect_one_line(result, {"not finite", "step 5", "rank 1"});
  EXPECT_EQ(processes_of(folder), 0);
}

// Every step is saved and three are kept: the loss of the sixth step must not reach any of them.
TEST(Failures, KeepOnlyFiniteCheckpointsWhenAStepIsNotANumber) {
  const TemporaryFolder folder;
  const CommandResult result = run(folder,
                                   {"--set", "replicas.count=2", "--set", "train.steps=10", "--set",
                                    "checkpoint.every_steps=1", "--set", "checkpoint.keep=3"},
                                   2, {{"CONVOY_PLANT", "nan:rank=1,step=5"}});
  EXPECT_EQ(result.status, 1) << result.errors;
  expect_one_line(result, {"not finite", "step 5"});
  const std::vector<elastic::CheckpointListing> kept =
      elastic::list_checkpoints(local_files(), folder.path() + "/out/checkpoints");
  std::vector<std::uint64_t> steps;
  for (const elastic::CheckpointListing& checkpoint : kept) {
    steps.push_back(checkpoint.step);
    EXPECT_EQ(checkpoint.problem, "");
    std::int64_t numbers = 0;
    for (const std::string& name : local_files().list(checkpoint.path)) {
      if (!name.ends_with(".safetensors")) continue;
      const elastic::SafetensorsReader reader(local_files(), checkpoint.path + "/" + name);
      for (const auto& [tensor, place] : reader.tensors()) {
        if (place.dtype != DType::kFloat64) continue;
        std::vector<double> values(static_cast<std::size_t>(place.elements));
        reader.read(tensor, 0, place.elements, std::as_writable_bytes(std::span(values)));
        for (const double value : values) EXPECT_TRUE(std::isfinite(value)) << checkpoint.path << ": " << tensor;
        numbers += place.elements;
      }
    }
    EXPECT_GE(numbers, 7850) << "the weights of the softmax model were looked at";
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{5, 4, 3}));
}

// Saved exactly at the end of the first of three epochs, then killed: the second epoch is neither skipped nor repeated.
TEST(Failures, GoOnWithTheNextEpochAfterAStopAtTheEndOfOne) {
  const TemporaryFolder folder;
  const std::vector<std::string> settings{"--set", "data.limit=300",          "--set", "train.global_batch=100",
                                          "--set", "train.steps=0",           "--set", "train.epochs=3",
                                          "--set", "checkpoint.every_steps=3"};
  const CommandResult killed = run(folder, settings, 2, {{"CONVOY_PLANT", "kill:rank=0,step=3"}});
  EXPECT_EQ(killed.status, 3) << "success is for the whole run only: " << killed.errors;
  std::vector<std::string> resuming = settings;
  resuming.push_back("--resume");
  const CommandResult resumed = run(folder, resuming);
  ASSERT_EQ(resumed.status, 0) << resumed.errors;
  const auto summary = nlohmann::json::parse(local_files().read(folder.path() + "/out/summary.json"));
  EXPECT_EQ(summary["resumed_at_step"], 3);
  EXPECT_EQ(summary["trained_here"]["steps"], 6);
  EXPECT_EQ(summary["steps"], 9);
  EXPECT_EQ(summary["ledger"]["samples"], 900) << "each of 300 samples three times";
  EXPECT_EQ(summary["ledger"]["repeated"], 0);
  EXPECT_EQ(summary["ledger"]["missing"], 0);
}

TEST(Failures, NameTheRankThatIsSlowByItsOwnWorkAndNobodyElse) {
  const TemporaryFolder folder;
  const CommandResult result = run(folder, {"--set", "replicas.count=3", "--set", "train.steps=20"}, 3,
                                   {{"CONVOY_PLANT", "slow:rank=2,step=0"}});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.errors.find("rank 2 is slow"), std::string::npos) << result.errors;
  const auto summary = nlohmann::json::parse(local_files().read(folder.path() + "/out/summary.json"));
  ASSERT_EQ(summary["slow_ranks"].size(), 1u) << summary["slow_ranks"];
  EXPECT_EQ(summary["slow_ranks"][0]["rank"], 2);
  EXPECT_GE(summary["slow_ranks"][0]["own_work_ms"], 50.0) << "what was planted";
}

// Named shared memory, but for that of Open MPI's ranks: other tests may run these beside this one.
std::set<std::string> shared_memory() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("vader_segment.") && !name.starts_with("open_mpi.")) names.insert(name);
  }
  return names;
}

TEST(Failures, NameRankAndSignalOfAKilledRankWithinFiveSeconds) {
  const TemporaryFolder folder;
  const std::set<std::string> shared_memory_before = shared_memory();
  const CommandResult whole = run(folder, {"--set", "train.steps=10"}, 3);
  EXPECT_EQ(whole.status, 0) << whole.errors;
  std::filesystem::remove_all(folder.path() + "/out");
  const CommandResult result = run(folder, {}, 3, {{"CONVOY_PLANT", "kill:rank=1,step=10"}});
  EXPECT_EQ(result.status, 3) << result.errors;
  expect_one_line(result, {"rank 1", "signal 9", "SIGKILL"});
  EXPECT_LT(to_seconds(result.elapsed), to_seconds(whole.elapsed) + 5.0);
  EXPECT_EQ(processes_of(folder), 0);
  EXPECT_EQ(shared_memory(), shared_memory_before);
}

TEST(Failures, NameAStoppedRankWhenTheDeadlineIsOver) {
  const TemporaryFolder folder;
  const CommandResult result = run(folder, {"--set", "comm.timeout_s=4"}, 2, {{"CONVOY_PLANT", "stop:rank=1,step=10"}});
  EXPECT_EQ(result.status, 3) << result.errors;
  expect_one_line(result, {"rank 1"});
  EXPECT_EQ(processes_of(folder), 0);
}

TEST(Ledger, IsCleanForThreeEpochsOfASizeThatDividesByNothingAndFindsDamage) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({kConvoy, "run", kRecipe, "-n", "2", "--out", folder.path() + "/out", "--set", "data.limit=1009",
                   "--set", "train.epochs=3", "--set", "train.steps=0", "--set", "train.global_batch=97", "--set",
                   "replicas.count=3", "--json"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto clean = run_command({kConvoy, "ledger", folder.path() + "/out", "--json"});
  ASSERT_EQ(clean.status, 0) << clean.output << clean.errors;
  const auto report = nlohmann::json::parse(clean.output);
  EXPECT_EQ(report["samples"], 3 * 1009);
  EXPECT_EQ(report["repeated"], 0);
  EXPECT_EQ(report["missing"], 0);

  const std::string ledger = folder.path() + "/out/ledger/g0001-rank-0000.jsonl";
  const std::string whole = local_files().read(ledger);
  const auto second = whole.find('\n') + 1;
  const auto third = whole.find('\n', second) + 1;
  for (const std::string& changed :
       {whole.substr(0, second) + whole.substr(third), whole.substr(0, third) + whole.substr(second)}) {
    const std::string_view text(changed);
    local_files().write(ledger, std::span(&text, 1));
    EXPECT_EQ(run_command({kConvoy, "ledger", folder.path() + "/out"}).status, 1);
  }
}

}  // namespace
}  // namespace convoy

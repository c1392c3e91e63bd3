// `convoy run` as a user runs it, with a small script in place of convoy-rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "convoy/base/files.h"
#include "convoy/spec/recipe.h"
#include "tests/support/processes.h"

namespace convoy {
namespace {

using testing::CommandResult;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using testing::new_marker;
using ::testing::Not;
using testing::processes_with;
using testing::Program;
using testing::read_text;
using ::testing::StartsWith;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";

// Writes what the real worker writes, as far as the command looks at it. A step of the whole batch takes 16 ms in one
// process, 19 ms as replicas on one rank, and 10 ms otherwise. FAKE says what else happens.
constexpr const char* kFakeRank = R"(
while [ $# -gt 0 ]; do
  case $1 in
    --recipe) recipe=$2; shift 2;;
    --out) out=$2; shift 2;;
    --resume) resume=yes; shift;;
    *) echo "unknown argument $1"; exit 2;;
  esac
done
echo "$OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS ${CONVOY_TIMING_ONLY-no} ${resume-no}" >> $out/seen-$RANK
echo "rank $RANK says hello"
event() { echo "$1" >&3; }
event '{"event":"progress","step":10,"steps":20,"epoch":0,"loss":0.5}'
case $FAKE-$RANK in
  fail-1) echo "the last words of rank 1" >&2; exit 3;;
  error-1) event '{"event":"error","code":"Failed","message":"non-finite loss in step 10"}'; exit 1;;
  error-0) event '{"event":"error","code":"Aborted","message":"rank 1 gave up"}'; exit 3;;
  kill-1) kill -9 $$;;
  nosummary-*) exit 0;;
  hang-*) exec sleep 300;;
esac
[ $RANK = 0 ] || exit 0
event '{"event":"phase","name":"evaluation"}'
event '{"event":"note","text":"a note of rank 0"}'
median=10
[ $WORLD_SIZE = 1 ] && median=19 && grep -q '^count = 1$' $recipe && median=16
case $FAKE in
  odd) echo '{"ok":true,"step_ms":3,"quality":{"loss":null},"peak_memory_bytes":[],"blas":"x"}' > $out/summary.json;;
  torn) printf '{"ok":' > $out/summary.json;;
  *) cat > $out/summary.json <<END
{"ok": true, "steps": 20, "ranks": $WORLD_SIZE, "replicas": 2, "global_batch": 128,
 "step_ms": {"median": $median.25, "p95": 12.5}, "samples_per_s": 12487.8,
 "breakdown_ms": {"input_wait": 0.5, "forward": 4.1, "comm": null},
 "quality": {"loss": 0.25, "accuracy": 0.9123, "macro_f1": 0.9101},
 "peak_memory_bytes": {"parameters": 1048576, "optimizer": 1048576, "peak_phase": "backward"},
 "ledger": {"samples": 2560, "repeated": 0, "missing": 0},
 "parameters_digest": "0123456789abcdef0123456789abcdef", "blas": {"library": "OpenBLAS", "kernel": "Zen"}}
END
esac
)";

// A folder with the command, the script beside it, a recipe and (empty) data files.
class RunCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(path("bin"));
    std::filesystem::copy_file(kConvoy, path("bin/convoy"));
    testing::write_script(path("bin/convoy-rank"), kFakeRank);
    for (const char* name : {"train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"}) {
      testing::write_text(path(std::string("data/") + name + "-ubyte.gz"), "");
    }
    testing::write_text(path("recipe.toml"),
                        "[task]\nname = \"a name/with parts\"\n[data]\npath = \"data\"\n[train]\nepochs = 2\n"
                        "[parallel]\nthreads = 2\n");
  }

  std::vector<std::string> command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), path("bin/convoy"));
    return arguments;
  }

  CommandResult run_convoy(const std::vector<std::string>& arguments, const std::string& fake = "") const {
    std::vector<std::string> in_folder = command(arguments);
    in_folder.insert(in_folder.begin(), {"/usr/bin/env", "-C", folder_.path()});
    return testing::run_command(in_folder, variables(fake));
  }

  std::map<std::string, std::string> variables(const std::string& fake) const {
    return {{"FAKE", fake}, {"CONVOY_TEST_MARKER", marker_}, {"OMP_NUM_THREADS", "7"}};
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& words) const {
    const CommandResult finished = run_convoy(arguments);
    EXPECT_EQ(finished.status, 2) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(words));
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string text(const std::string& name) const { return read_text(path(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }

  testing::TemporaryFolder folder_;
  std::string marker_ = new_marker();
};

TEST_F(RunCommand, LeavesADirectoryAndPrintsATable) {
  const CommandResult finished =
      run_convoy({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "train.global_batch=64"});
  EXPECT_EQ(finished.status, 0) << finished.errors;
  for (const char* words : {"accuracy", "0.9123", "macro F1", "0.9101", "10.25 ms", "12.50 ms", "12488", "2.0 MiB",
                            "OpenBLAS, kernel Zen", "0123456789abcdef0123456789abcdef", "2560 samples, 0 repeated",
                            "forward", "4.100", "40.0%", "run directory: out"}) {
    EXPECT_THAT(finished.output, HasSubstr(words));
  }
  EXPECT_THAT(finished.errors, HasSubstr("step 10 of 20"));
  EXPECT_THAT(finished.errors, HasSubstr("a note of rank 0"));
  EXPECT_EQ(text("out/log/rank-0.log"), "rank 0 says hello\n");
  EXPECT_EQ(text("out/log/rank-1.log"), "rank 1 says hello\n");
  EXPECT_EQ(text("out/seen-1"), "2 2 2 no no\n") << "the recipe's threads replace the user's";
  const spec::Recipe written = spec::read_recipe(path("out/recipe.toml"));
  EXPECT_EQ(written.train.global_batch, 64);
  EXPECT_EQ(written.train.epochs, 2);
}

TEST_F(RunCommand, RecordsItsEnvironment) {
  ASSERT_EQ(run_convoy({"run", "recipe.toml", "-n", "2", "--out", "out"}).status, 0);
  const auto record = nlohmann::json::parse(text("out/environment.json"));
  for (const char* key : {"host", "kernel", "cpu", "convoy_version", "started"})
    EXPECT_TRUE(record.at(key).is_string());
  EXPECT_GT(record.at("memory_bytes"), 1 << 20);
  EXPECT_GE(record.at("cores"), 1);
  EXPECT_EQ(record.at("ranks"), 2);
  EXPECT_EQ(record.at("variables").at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(record.at("command_line"), nlohmann::json({"convoy", "run", "recipe.toml", "-n", "2", "--out", "out"}));
}

TEST_F(RunCommand, MakesANewDirectoryForEachRun) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run_convoy({"run", "recipe.toml", "-n", "1", "--quiet"}).status, 0);
  const std::vector<std::string> runs = local_files().list(path("runs"));
  ASSERT_EQ(runs.size(), 3u);
  for (const std::string& run : runs)
    EXPECT_THAT(run, ::testing::MatchesRegex("a-name-with-parts-[0-9]+-[0-9]+(-[0-9]+)?"));
}

TEST_F(RunCommand, IsQuietWhenAsked) { EXPECT_EQ(run_convoy({"run", "recipe.toml", "-n", "2", "--quiet"}).errors, ""); }

TEST_F(RunCommand, PrintsTheSummaryAsOneJsonObject) {
  const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "2", "--out", "out", "--json"});
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(nlohmann::json::parse(finished.output), nlohmann::json::parse(text("out/summary.json")));
}

TEST_F(RunCommand, ShowsADashForWhatTheSummaryLacks) {
  const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "1", "--out", "out"}, "odd");
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("accuracy +-\n"));
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("step, median +-\n"));
}

TEST_F(RunCommand, FailsWhenTheSummaryIsMissingOrTorn) {
  for (const std::string fake : {"nosummary", "torn"}) {
    const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "1", "--quiet"}, fake);
    EXPECT_EQ(finished.status, 4);
    EXPECT_THAT(finished.errors, HasSubstr("summary.json"));
    EXPECT_EQ(lines_of(finished.errors).size(), 1u);
  }
}

TEST_F(RunCommand, RefusesWhatCannotRunBeforeAnyRankStarts) {
  expect_refused({"run", "recipe.toml", "-n", "0", "--out", "out"}, "-n 0");
  expect_refused({"run", "recipe.toml", "-n", "3", "--out", "out"}, "-n 3: 3 ranks for the 2 replicas");
  expect_refused({"run", "missing.toml", "-n", "2", "--out", "out"}, "there is no recipe missing.toml");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "train.learning_rat=1"}, "learning_rate");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "data.path=nowhere"},
                 "there is no data folder nowhere");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "comm.transport=openmpi"},
                 "mpirun -n 2 convoy-rank --recipe recipe.toml");
  testing::write_text(path("typo.toml"), "[train]\nlearning_rat = 0.1\n");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "comm.hosts=[\"a\", \"a\", \"b\"]"},
                 "-n 2: comm.hosts names a host for each of 3 ranks, and there are 2 ranks (recipe.toml)");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out", "--set", "comm.algorithm=ring"},
                 "[comm] key 'algorithm': with replicas, results do not depend on the number of ranks");
  expect_refused({"run", "typo.toml", "-n", "2", "--out", "out"}, "typo.toml:2");
  std::filesystem::remove(path("data/t10k-labels-idx1-ubyte.gz"));
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out"}, "data/t10k-labels");
  EXPECT_FALSE(exists("out"));
  std::filesystem::remove(path("bin/convoy-rank"));
  testing::write_text(path("data/t10k-labels-idx1-ubyte"), "");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out"}, "convoy-rank is missing");
  EXPECT_FALSE(exists("out"));
}

TEST_F(RunCommand, RunsMoreRanksThanReplicasWhereThereAreNone) {
  EXPECT_EQ(run_convoy({"run", "recipe.toml", "-n", "3", "--set", "replicas.mode=off"}).status, 0);
}

TEST_F(RunCommand, NeverWritesIntoADirectoryThatIsNotEmpty) {
  testing::write_text(path("out/precious"), "data");
  expect_refused({"run", "recipe.toml", "-n", "2", "--out", "out"}, "the run directory out is not empty");
  EXPECT_EQ(local_files().list(path("out")), std::vector<std::string>{"precious"});
  std::filesystem::create_directories(path("empty"));
  EXPECT_EQ(run_convoy({"run", "recipe.toml", "-n", "2", "--out", "empty"}).status, 0);
}

TEST_F(RunCommand, GoesOnInItsDirectory) {
  expect_refused({"run", "recipe.toml", "-n", "2", "--resume", "out"}, "no run to resume in out");
  ASSERT_EQ(run_convoy({"run", "recipe.toml", "-n", "2", "--out", "out"}).status, 0);
  EXPECT_EQ(run_convoy({"run", "recipe.toml", "-n", "1", "--resume", "out"}).status, 0);
  EXPECT_EQ(run_convoy({"run", "recipe.toml", "-n", "1", "--resume", "--out", "out"}).status, 0);
  EXPECT_EQ(text("out/seen-0"), "2 2 2 no no\n2 2 2 no yes\n2 2 2 no yes\n");
  expect_refused({"run", "recipe.toml", "-n", "2", "--resume", "out", "--set", "train.learning_rate=0.5"},
                 "had another recipe");
  EXPECT_EQ(spec::read_recipe(path("out/recipe.toml")).train.learning_rate, 0.1);
}

TEST_F(RunCommand, NamesTheRankThatFailedAndShowsItsLastLines) {
  const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "2", "--quiet"}, "fail");
  EXPECT_EQ(finished.status, 3);
  EXPECT_EQ(finished.output, "");
  EXPECT_THAT(finished.errors, StartsWith("convoy: rank 1 ended with status 3"));
  EXPECT_THAT(finished.errors, HasSubstr("[rank 1] the last words of rank 1\n"));
  EXPECT_THAT(finished.errors, Not(HasSubstr("[rank 0]")));
}

TEST_F(RunCommand, SaysAReportedErrorInOneLine) {
  const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "2", "--quiet"}, "error");
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.errors, "convoy: rank 1 ended with status 1: non-finite loss in step 10\n");
}

TEST_F(RunCommand, EndsSoonAfterARankIsKilled) {
  const CommandResult finished = run_convoy({"run", "recipe.toml", "-n", "2", "--quiet", "--json"}, "kill");
  EXPECT_EQ(finished.status, 3);
  EXPECT_LT(to_seconds(finished.elapsed), 5.0);
  EXPECT_THAT(finished.errors, HasSubstr("rank 1 was ended by signal 9 (SIGKILL) in step 10"));
  EXPECT_EQ(nlohmann::json::parse(finished.output).at("ok"), false);
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

TEST_F(RunCommand, EndsEverythingOnCtrlC) {
  Program job(command({"run", "recipe.toml", "-n", "2", "--quiet"}), variables("hang"), folder_.path());
  ASSERT_TRUE(eventually([&] { return processes_with(marker_).size() >= 4; }));
  job.signal(SIGINT);
  const CommandResult finished = job.wait();
  EXPECT_EQ(finished.status, 130);
  EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
  EXPECT_THAT(processes_with(marker_), IsEmpty());
}

TEST_F(RunCommand, TimesBothBaselinesAndNamesTheFaster) {
  const CommandResult finished =
      run_convoy({"run", "recipe.toml", "-n", "2", "--out", "out", "--baselines", "--baseline-steps", "30"});
  ASSERT_EQ(finished.status, 0) << finished.errors;
  const auto speedup = nlohmann::json::parse(text("out/summary.json")).at("speedup");
  EXPECT_EQ(speedup.at("baseline"), "whole batch in one process");
  EXPECT_DOUBLE_EQ(speedup.at("over_one_rank_same_replicas"), 19.25 / 10.25);
  EXPECT_DOUBLE_EQ(speedup.at("over_one_process_whole_batch"), 16.25 / 10.25);
  EXPECT_THAT(finished.output,
              ::testing::ContainsRegex("whole batch in one process \\(the baseline: the faster\\).*1.59x"));
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("same replicas on one rank +19.25 ms +1.88x"));
  EXPECT_EQ(text("out/timing/same-ranks-2/seen-1"), "2 2 2 1 no\n");
  EXPECT_EQ(text("out/timing/one-process-1/seen-0"), "2 2 2 1 no\n");
  EXPECT_FALSE(exists("out/timing/one-process-1/seen-1"));
  const spec::Recipe timed = spec::read_recipe(path("out/timing/one-process-2/recipe.toml"));
  EXPECT_EQ(timed.train.steps, 30);
  EXPECT_EQ(timed.train.evaluate_every, 0);
  EXPECT_EQ(timed.replicas.count, 1);
  EXPECT_FALSE(timed.checkpoint.at_end);
}

}  // namespace
}  // namespace convoy

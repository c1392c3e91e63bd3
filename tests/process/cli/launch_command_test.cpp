// The command as a user runs it: usage, launch, signals.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/processes.h"

namespace convoy {
namespace {

using ::testing::AnyOf;
using testing::CommandResult;
using ::testing::Each;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using testing::new_marker;
using testing::processes_with;
using testing::Program;
using testing::read_text;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

const std::string kConvoy = std::string(CONVOY_BINARY_DIR) + "/bin/convoy";

CommandResult run_convoy(std::vector<std::string> arguments, const std::map<std::string, std::string>& variables = {}) {
  arguments.insert(arguments.begin(), kConvoy);
  return testing::run_command(arguments, variables);
}

// One clear line on standard error, nothing on standard output.
void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
  const CommandResult finished = run_convoy(arguments);
  EXPECT_EQ(finished.status, 2) << finished.errors;
  EXPECT_EQ(finished.output, "");
  EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
  EXPECT_THAT(finished.errors, StartsWith("convoy: "));
  EXPECT_THAT(finished.errors, HasSubstr(words));
}

TEST(Command, SaysItsVersionWhichIsTheProjects) {
  const CommandResult finished = run_convoy({"--version"});
  EXPECT_EQ(finished.status, 0);
  const std::string project = read_text(std::string(CONVOY_SOURCE_DIR) + "/CMakeLists.txt");
  const auto at = project.find("project(convoy VERSION ") + std::string("project(convoy VERSION ").size();
  EXPECT_EQ(finished.output, "convoy " + project.substr(at, project.find(' ', at) - at) + "\n");
}

TEST(Command, ExplainsEachVerbWithAnExample) {
  EXPECT_THAT(run_convoy({"--help"}).output, HasSubstr("Example:\n  convoy run"));
  for (const std::string verb : {"run", "launch", "ledger"}) {
    const CommandResult finished = run_convoy({verb, "--help"});
    EXPECT_EQ(finished.status, 0);
    EXPECT_THAT(finished.output, HasSubstr("Example:\n  convoy " + verb));
  }
}

TEST(Command, RefusesBadUsageInOneLine) {
  expect_refused({}, "which command? run, verify, profile, launch, explain, ledger, trace, data, bench (see convoy --help)");
  expect_refused({"lauch"}, "unknown command 'lauch' (did you mean 'launch'?)");
  expect_refused({"run", "-n", "2"}, "RECIPE is required");
  expect_refused({"run", "x.toml"}, "--ranks is required");
  expect_refused({"run", "x.toml", "-n", "two"}, "run: ");
  expect_refused({"run", "x.toml", "-n", "0"}, "-n 0: a job needs at least 1 rank");
  expect_refused({"run", "x.toml", "-n", "-1"}, "-n -1: a job needs at least 1 rank");
  expect_refused({"run", "x.toml", "-n", "2", "--rseume"}, "unknown option --rseume (did you mean '--resume'?)");
  expect_refused({"run", "x.toml", "y.toml", "-n", "2"}, "unexpected argument 'y.toml'");
  expect_refused({"run", "x.toml", "-n", "2", "--resume"}, "--resume needs the run directory");
  expect_refused({"run", "x.toml", "-n", "2", "--resume", "a", "--out", "b"}, "different directories");
  expect_refused({"run", "x.toml", "-n", "2", "--baseline-steps", "0"}, "--baseline-steps must be at least 1");
  expect_refused({"launch", "-n", "0", "--", "true"}, "-n 0: a job needs at least 1 rank");
  expect_refused({"launch", "-n", "2"}, "which program?");
  expect_refused({"launch", "-n", "2", "true"}, "unexpected argument 'true'");
  expect_refused({"launch", "-n", "2", "--", "convoy-no-such-program"}, "no such program in PATH");
  expect_refused({"ledger"}, "RUNDIR is required");
  expect_refused({"ledger", "no-such-run"}, "no run directory no-such-run");
}

// Processor time, which a busy machine does not stretch as it stretches the time on the clock.
TEST(Command, StartsInMilliseconds) {
  const auto used_ms = [] {
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
  };
  double fastest_ms = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double before = used_ms();
    ASSERT_EQ(run_convoy({"--version"}).status, 0);
    fastest_ms = std::min(fastest_ms, used_ms() - before);
  }
  EXPECT_LT(fastest_ms, 20.0);
}

TEST(CommandLaunch, PassesOutputOnWithTheRank) {
  const CommandResult finished =
      run_convoy({"launch", "-n", "2", "--", "sh", "-c", "echo out $RANK; echo err $RANK >&2"});
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(lines_of(finished.output), UnorderedElementsAre("[rank 0] out 0", "[rank 1] out 1"));
  EXPECT_THAT(lines_of(finished.errors), UnorderedElementsAre("[rank 0] err 0", "[rank 1] err 1"));
}

TEST(CommandLaunch, GivesTheProgramItsArgumentsUntouched) {
  const CommandResult finished =
      run_convoy({"launch", "-n", "1", "--", "printf", "%s|", "-n", "--json", "--", "a b", ""});
  EXPECT_EQ(finished.output, "[rank 0] -n|--json|--|a b||\n");
}

TEST(CommandLaunch, NeverMixesLinesOfRanks) {
  const CommandResult finished =
      run_convoy({"launch", "-n", "4", "--", "sh", "-c",
                  "for i in 1 2 3 4 5; do head -c 70000 /dev/zero | tr '\\0' $RANK; echo; done"});
  EXPECT_EQ(finished.status, 0);
  std::map<std::string, int> count;
  for (const std::string& line : lines_of(finished.output)) ++count[line];
  EXPECT_EQ(count.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const std::string line = fmt::format("[rank {}] ", rank) + std::string(70000, static_cast<char>('0' + rank));
    EXPECT_EQ(count[line], 5);
  }
}

TEST(CommandLaunch, PrintsOneJsonObjectAndNothingElse) {
  const CommandResult finished =
      run_convoy({"launch", "-n", "2", "--json", "--", "sh", "-c", "echo noise; exit $((RANK * 3))"});
  EXPECT_EQ(finished.status, 3);
  const auto object = nlohmann::json::parse(finished.output);
  EXPECT_EQ(object["ok"], false);
  EXPECT_EQ(object["status"], 3);
  EXPECT_EQ(object["culprit"], 1);
  EXPECT_EQ(object["ranks"][0]["status"], 0);
  EXPECT_EQ(object["ranks"][1]["status"], 3);
  EXPECT_THAT(finished.errors, HasSubstr("[rank 0] noise"));
  EXPECT_THAT(finished.errors, HasSubstr("convoy: rank 1 ended with status 3"));
}

TEST(CommandLaunch, SaysWhenItsResultIsLost) {
  const CommandResult finished =
      testing::run_command({"/bin/sh", "-c", kConvoy + " launch -n 1 --json -- true > /dev/full"});
  EXPECT_EQ(finished.status, 4);
  EXPECT_THAT(finished.errors, HasSubstr("could not be written"));
}

TEST(CommandLaunch, KeepsTheThreadsThatTheUserSet) {
  const std::vector<std::string> command = {
      "launch", "-n", "1", "--", "sh", "-c", "echo \"$OMP_NUM_THREADS ${OPENBLAS_CORETYPE-unset}\""};
  EXPECT_EQ(run_convoy(command, {{"OMP_NUM_THREADS", "3"}, {"OPENBLAS_CORETYPE", ""}}).output, "[rank 0] 3 \n");
  EXPECT_EQ(run_convoy(command, {{"OPENBLAS_CORETYPE", "Prescott"}}).output, "[rank 0] 1 Prescott\n");
}

// A job of three ranks that would run for minutes, and the signals that end it.
class CommandSignals : public ::testing::Test {
 protected:
  void start(std::vector<std::string> program) {
    std::vector<std::string> command = {kConvoy, "launch", "-n", "3", "--"};
    command.insert(command.end(), program.begin(), program.end());
    job_ = std::make_unique<Program>(command, std::map<std::string, std::string>{{"CONVOY_TEST_MARKER", marker_}});
  }

  // The command itself, its guard and its three ranks.
  bool running() const { return processes_with(marker_).size() >= 5; }
  bool all_gone() const { return processes_with(marker_).empty(); }

  std::string marker_ = new_marker();
  std::unique_ptr<Program> job_;
};

TEST_F(CommandSignals, EndAllRanksAndTheCommandInOrder) {
  for (const auto& [signal, status] : std::map<int, int>{{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
    start({"sleep", "300"});
    ASSERT_TRUE(eventually([&] { return running(); }));
    job_->signal(signal);
    const CommandResult finished = job_->wait();
    EXPECT_EQ(finished.status, status);
    EXPECT_EQ(lines_of(finished.errors).size(), 1u) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr(fmt::format("convoy: interrupted by signal {}", signal)));
    EXPECT_TRUE(all_gone());
  }
}

TEST_F(CommandSignals, ASecondOneKillsAtOnce) {
  start({"sh", "-c", "trap '' TERM INT; while :; do sleep 0.05; done"});
  ASSERT_TRUE(eventually([&] { return running(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the traps
  const auto begin = std::chrono::steady_clock::now();
  job_->signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  job_->signal(SIGINT);
  EXPECT_EQ(job_->wait().status, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1400));
  EXPECT_TRUE(all_gone());
}

TEST_F(CommandSignals, LeaveNothingEvenWhenTheCommandIsKilled) {
  start({"sleep", "300"});
  ASSERT_TRUE(eventually([&] { return running(); }));
  job_->signal(SIGKILL);
  EXPECT_EQ(job_->wait().status, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return all_gone(); }, std::chrono::milliseconds(5000)));
}

TEST_F(CommandSignals, LeaveNotEvenWhatRanksStartedWhenTheCommandIsKilled) {
  start({"sh", "-c", "sleep 300; true"});
  ASSERT_TRUE(eventually([&] { return processes_with(marker_).size() >= 8; }));
  job_->signal(SIGKILL);
  EXPECT_EQ(job_->wait().status, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return all_gone(); }, std::chrono::milliseconds(5000)));
}

TEST_F(CommandSignals, ThatTheCommandWasStartedToIgnoreStayIgnored) {
  Program job({"nohup", kConvoy, "launch", "-n", "1", "--", "sh", "-c", "echo up; sleep 0.5; echo done"});
  ASSERT_TRUE(eventually([&] { return job.output().find("up") != std::string::npos; }));
  job.signal(SIGHUP);
  const CommandResult finished = job.wait();
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(finished.output, HasSubstr("[rank 0] done"));
}

TEST(CommandLaunch, WatchesOverRanksWhileNobodyReadsTheirOutput) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string marker = new_marker();
  const testing::TemporaryFolder folder;
  Program job({kConvoy, "launch", "-n", "2", "--", "sh", "-c",
               "[ $RANK = 0 ] && exec yes a-line-that-nobody-reads; while [ ! -e $FOLDER/go ]; do sleep 0.02; done; "
               "kill -9 $$"},
              {{"CONVOY_TEST_MARKER", marker}, {"FOLDER", folder.path()}}, ".", ends[1]);
  ::close(ends[1]);
  ASSERT_TRUE(eventually([&] { return processes_with(marker).size() >= 4; }));
  testing::write_text(folder.path() + "/go", "");
  // Only the command and its guard are left: they still have lines to hand over.
  EXPECT_TRUE(eventually([&] { return processes_with(marker).size() == 2; }));
  ::close(ends[0]);
  const CommandResult finished = job.wait();
  EXPECT_EQ(finished.status, 3);
  EXPECT_THAT(finished.errors, HasSubstr("rank 1 was ended by signal 9 (SIGKILL)"));
}

}  // namespace
}  // namespace convoy

// The launcher on real processes: small shell programs as ranks.
#include "convoy/elastic/launcher/launcher.h"
#include "convoy/elastic/launcher/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "convoy/base/error.h"
#include "tests/support/processes.h"

namespace convoy::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using testing::processes_with;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

// Ranks that run a shell text, marked so that each process that they leave can be found.
class Launcher : public ::testing::Test {
 protected:
  LaunchOptions ranks(int count, const std::string& shell_text) {
    LaunchOptions options;
    options.program = "sh";
    options.arguments = {"-c", shell_text};
    options.ranks = count;
    options.extra_environment = {{"CONVOY_TEST_MARKER", marker_}, {"FOLDER", folder_.path()}};
    return options;
  }

  void expect_nobody_left() {
    EXPECT_THAT(processes_with(marker_), IsEmpty());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
  }

  TemporaryFolder folder_;
  std::string marker_ = testing::new_marker();
};

TEST_F(Launcher, EndsWellWhenEveryRankDoes) {
  const LaunchResult result = launch(ranks(3, "exit 0"));
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.culprit, -1);
  EXPECT_EQ(result.message, "");
  ASSERT_EQ(result.ranks.size(), 3u);
  for (const RankOutcome& rank : result.ranks) EXPECT_EQ(rank.status, 0);
  expect_nobody_left();
}

TEST_F(Launcher, TellsEachRankItsPlace) {
  LaunchOptions options = ranks(3,
                                "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $CONVOY_EVENTS_FD "
                                "$CONVOY_STORE $CONVOY_JOB_TOKEN > $FOLDER/$RANK");
  ASSERT_TRUE(launch(options).ok());
  std::set<std::string> addresses;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string said = read_text(folder_.path() + "/" + std::to_string(rank));
    const std::string place = fmt::format("{} 3 {} 3 3 ", rank, rank);
    ASSERT_EQ(said.substr(0, place.size()), place);
    EXPECT_THAT(said.substr(place.size()), ::testing::MatchesRegex("unix:@[^ ]+ [0-9a-f]{32}\n"));
    addresses.insert(said.substr(place.size()));
  }
  EXPECT_EQ(addresses.size(), 1u) << "all ranks share one store and token";
}

TEST_F(Launcher, GivesEachJobItsOwnToken) {
  const LaunchOptions options = ranks(1, "echo $CONVOY_STORE $CONVOY_JOB_TOKEN >> $FOLDER/tokens");
  ASSERT_TRUE(launch(options).ok());
  ASSERT_TRUE(launch(options).ok());
  const auto tokens = lines_of(read_text(folder_.path() + "/tokens"));
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_NE(tokens[0], tokens[1]);
}

TEST_F(Launcher, GivesRanksAnEmptyInput) { EXPECT_TRUE(launch(ranks(2, "read line && exit 1; exit 0")).ok()); }

TEST_F(Launcher, GivesRanksNoneOfItsDescriptors) {
  // Besides the three that every program has: the pipe for events, and the job's state file.
  std::set<int> expected = {0, 1, 2, kEventsFd, kStateFd};
  for (int fd = kStateFd + 1; fd < 1024; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) expected.insert(fd);  // this program's parent wants it so
  }
  LaunchOptions options = ranks(2, "while [ ! -e $FOLDER/seen ]; do sleep 0.02; done");
  std::set<int> found;
  options.on_start = [&](int rank, pid_t pid) {
    if (rank != 1) return;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
      found.insert(std::stoi(entry.path().filename()));
    }
    write_text(folder_.path() + "/seen", "");
  };
  EXPECT_TRUE(launch(options).ok());
  EXPECT_EQ(found, expected);
}

TEST_F(Launcher, KeepsTheStatusOfTheRankThatFailed) {
  const LaunchResult result = launch(ranks(3, "[ $RANK = 1 ] && exit 3; exec sleep 300"));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.culprit, 1);
  EXPECT_EQ(result.message, "rank 1 ended with status 3; the other ranks were stopped");
  EXPECT_EQ(result.ranks[1].status, 3);
  EXPECT_FALSE(result.ranks[1].stopped);
  EXPECT_EQ(result.ranks[0].signal, SIGTERM);
  EXPECT_TRUE(result.ranks[0].stopped);
  EXPECT_LT(to_seconds(result.elapsed), 5.0);
  expect_nobody_left();
}

TEST_F(Launcher, TurnsAnUnknownStatusIntoOne) {
  EXPECT_EQ(launch(ranks(1, "exit 77")).status, 1);
  EXPECT_EQ(launch(ranks(1, "exit 2")).status, 2);
  EXPECT_EQ(launch(ranks(1, "exit 4")).status, 4);
}

TEST_F(Launcher, NamesRankSignalAndStepWhenARankIsKilled) {
  LaunchOptions options = ranks(4, R"(echo '{"event":"progress","step":10,"steps":60}' >&3; exec sleep 300)");
  std::map<int, pid_t> pids;
  options.on_start = [&](int rank, pid_t pid) { pids[rank] = pid; };
  options.on_event = [&](int rank, const RankEvent& event) {
    if (rank == 1 && event.step == 10) ::kill(pids[1], SIGKILL);
  };
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.culprit, 1);
  EXPECT_EQ(result.message, "rank 1 was ended by signal 9 (SIGKILL) in step 10; the other ranks were stopped");
  EXPECT_LT(to_seconds(result.elapsed), 5.0);
  for (const auto& entry : pids) EXPECT_EQ(::kill(entry.second, 0), -1);
  expect_nobody_left();
}

TEST_F(Launcher, LetsTheOthersEndByThemselvesFirst) {
  LaunchOptions options = ranks(2, "[ $RANK = 0 ] && exit 1; sleep 0.3; exit 3");
  options.settle = std::chrono::seconds(20);
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.culprit, 0);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.ranks[1].status, 3);
  EXPECT_FALSE(result.ranks[1].stopped);
}

TEST_F(Launcher, KillsARankThatIgnoresToBeStopped) {
  LaunchOptions options = ranks(2, "[ $RANK = 1 ] && exit 1; trap '' TERM; while :; do sleep 0.05; done");
  options.settle = options.terminate = std::chrono::milliseconds(200);
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.culprit, 1);
  EXPECT_EQ(result.ranks[0].signal, SIGKILL);
  EXPECT_TRUE(result.ranks[0].stopped);
  expect_nobody_left();
}

TEST_F(Launcher, KillsARankThatIsPaused) {
  LaunchOptions options = ranks(2, "[ $RANK = 0 ] && kill -STOP $$; exit 1");
  options.settle = options.terminate = std::chrono::milliseconds(200);
  const LaunchResult result = launch(options);
  EXPECT_EQ(result.culprit, 1);
  EXPECT_TRUE(result.ranks[0].stopped);
  expect_nobody_left();
}

TEST_F(Launcher, TakesWhatRanksStartedWithThem) {
  EXPECT_TRUE(launch(ranks(2, "sleep 300 & exit 0")).ok());
  expect_nobody_left();
}

TEST_F(Launcher, BlamesTheRankWithAnErrorOfItsOwn) {
  const LaunchResult result = launch(ranks(3, R"(
    error() { echo '{"event":"error","code":"'$1'","message":"'"$2"'"}' >&3; }
    case $RANK in
      0) error Aborted "rank 2 gave up"; exit 3;;
      1) sleep 0.1; error Aborted "rank 2 gave up"; exit 3;;
      2) sleep 0.3; error Failed "non-finite loss"; exit 1;;
    esac)"));
  EXPECT_EQ(result.culprit, 2);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.message, "rank 2 ended with status 1: non-finite loss");
}

TEST_F(Launcher, BlamesARankKilledByASignalBeforeAnyError) {
  const LaunchResult result = launch(ranks(2, R"(
    [ $RANK = 0 ] && echo '{"event":"error","code":"PeerLost","message":"rank 1 is gone"}' >&3 && exit 3
    sleep 0.2; kill -SEGV $$)"));
  EXPECT_EQ(result.culprit, 1);
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.message, HasSubstr("rank 1 was ended by signal 11 (SIGSEGV)"));
}

TEST_F(Launcher, HandsEventsOnAndIgnoresGarbage) {
  LaunchOptions options = ranks(1, R"(
    echo 'no json' >&3; echo '[1,2]' >&3; echo '{"event":17}' >&3; echo '{"event":"unknown"}' >&3; echo >&3
    printf '\377\376{\n' >&3
    echo '{"event":"progress","step":"many"}' >&3
    echo '{"event":"phase","name":"evaluation"}' >&3
    printf '{"event":"note","text":"without line end"}' >&3)");
  std::vector<std::string> seen;
  options.on_event = [&](int, const RankEvent& event) {
    seen.push_back(fmt::format("{}:{}", static_cast<int>(event.kind), event.text));
  };
  EXPECT_TRUE(launch(options).ok());
  EXPECT_THAT(seen, ElementsAre("0:", "1:evaluation", "2:without line end"));
}

TEST_F(Launcher, KeepsOutputInALogForEachRank) {
  LaunchOptions options = ranks(2, "echo out $RANK; echo err $RANK >&2; printf tail");
  options.log_folder = folder_.path();
  ASSERT_TRUE(launch(options).ok());
  for (int rank = 0; rank < 2; ++rank) {
    const auto lines = lines_of(read_text(fmt::format("{}/rank-{}.log", folder_.path(), rank)));
    EXPECT_THAT(lines,
                ::testing::UnorderedElementsAre(fmt::format("out {}", rank), fmt::format("err {}", rank), "tail"));
  }
}

TEST_F(Launcher, RemembersTheLastLines) {
  const LaunchResult result = launch(ranks(1, "for i in $(seq 40); do echo line $i; done; exit 1"));
  ASSERT_EQ(result.ranks[0].last_lines.size(), 15u);
  EXPECT_EQ(result.ranks[0].last_lines.front(), "line 26");
  EXPECT_EQ(result.ranks[0].last_lines.back(), "line 40");
}

TEST_F(Launcher, KeepsLinesLongerThanAPipeWhole) {
  LaunchOptions options = ranks(2, "head -c 200000 /dev/zero | tr '\\0' x; echo end");
  options.log_folder = folder_.path();
  ASSERT_TRUE(launch(options).ok());
  EXPECT_EQ(read_text(folder_.path() + "/rank-1.log"), std::string(200000, 'x') + "end\n");
}

TEST_F(Launcher, StartsManyRanks) {
  const LaunchResult result = launch(ranks(16, "exit $([ $RANK = 13 ] && echo 2 || echo 0)"));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.culprit, 13);
  expect_nobody_left();
}

TEST_F(Launcher, DoesNotWaitForAProcessThatLeftItsGroup) {
  // The runaway keeps the rank's output open; the test ends it itself.
  const LaunchResult result = launch(ranks(1,
                                           "setsid sh -c 'echo $$ > $FOLDER/pid; exec sleep 20' & "
                                           "while [ ! -s $FOLDER/pid ]; do sleep 0.02; done; exit 0"));
  EXPECT_TRUE(result.ok());
  EXPECT_LT(to_seconds(result.elapsed), 10.0);
  ::kill(std::stoi(read_text(folder_.path() + "/pid")), SIGKILL);
}

TEST_F(Launcher, LeaksNoDescriptors) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  ASSERT_TRUE(launch(ranks(2, "exit 0")).ok());
  const auto before = descriptors();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(launch(ranks(2, "exit 0")).ok());
  EXPECT_EQ(descriptors(), before);
  expect_nobody_left();
}

TEST_F(Launcher, GivesRanksOneStateFileThatOutlivesThem) {
  // Rank 0 is gone, without a word, when rank 1 reads what it wrote.
  const LaunchResult result = launch(ranks(2,
                                           "if [ $RANK = 0 ]; then echo kept > /proc/self/fd/$CONVOY_STATE_FD; exit 0; fi; "
                                           "for i in $(seq 500); do "
                                           "grep -q kept /proc/self/fd/$CONVOY_STATE_FD && exit 0; sleep 0.02; done; exit 7"));
  EXPECT_TRUE(result.ok()) << result.message;
  ::setenv("CONVOY_STATE_FD", "99", 1);
  EXPECT_TRUE(launch(ranks(1, "[ $CONVOY_STATE_FD = 4 ]")).ok()) << "a launcher further up has another file";
  ::unsetenv("CONVOY_STATE_FD");
}

TEST_F(Launcher, RefusesWhatItCannotStart) {
  const auto refuses = [](LaunchOptions options, const std::string& words) {
    try {
      launch(options);
      FAIL() << "started " << options.program;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  LaunchOptions options = ranks(0, "exit 0");
  refuses(options, "at least 1 rank, not 0");
  options.ranks = 2;
  options.program = "convoy-no-such-program";
  refuses(options, "cannot run 'convoy-no-such-program': no such program in PATH");
  options.program = folder_.path() + "/missing";
  refuses(options, "there is no such file");
  options.program = write_text(folder_.path() + "/text", "hello\n");
  refuses(options, "it is not an executable file");
  options.program = testing::write_script(folder_.path() + "/bad", "");
  write_text(folder_.path() + "/bad", "#!/no/such/interpreter\n");
  refuses(options, "No such file or directory");
  expect_nobody_left();
}

}  // namespace
}  // namespace convoy::elastic

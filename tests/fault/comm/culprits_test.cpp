// One of four ranks is killed, stopped, late or cut off, each rank in turn: every other one says so within its deadline and
// a second, names that rank and nobody else, and then leaves the processor alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/spec/collectives/registry.h"
#include "tests/support/namespaces.h"
#include "tests/support/rank_processes.h"
#include "tests/support/shared_array.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::NamespaceStar;
using testing::RankContext;
using testing::RankProcesses;
using testing::SharedArray;

constexpr int kRanks = 4;
constexpr Duration kLimit = seconds(2);
constexpr Duration kLate = seconds(10);
constexpr Duration kWatch = milliseconds(300);

std::int64_t now_ns() { return std::chrono::duration_cast<Duration>(system_clock().now().time_since_epoch()).count(); }

// What a rank reports of the operation that failed.
struct Report {
  std::int64_t began_ns;
  std::int64_t ended_ns;  // 0 when the rank has reported nothing
  int code;
  char message[1000];
  // The most processor time that one of its threads used while it was watched.
  double busy_s;
};

// Processor time of each thread of this process.
std::map<std::string, double> thread_seconds() {
  std::map<std::string, double> seconds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // What stands before the last bracket is the name, which may hold blanks.
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string word;
    double ticks = 0;
    for (int field = 3; field <= 15 && fields >> word; ++field) {
      if (field >= 14) ticks += std::stod(word);
    }
    seconds[entry.path().filename()] = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return seconds;
}

double busiest_thread_seconds() {
  const auto before = thread_seconds();
  system_clock().sleep_for(kWatch);
  double most = 0;
  for (const auto& [thread, seconds] : thread_seconds()) {
    const auto found = before.find(thread);
    most = std::max(most, seconds - (found == before.end() ? 0 : found->second));
  }
  return most;
}

// Runs an operation again and again until it fails, and reports that. The group is still there while threads are watched.
void run_until_it_fails(Report& report, const std::function<void()>& operation) {
  while (true) {
    report.began_ns = now_ns();
    try {
      operation();
    } catch (const Error& error) {
      const std::int64_t ended = now_ns();
      report.code = static_cast<int>(error.code());
      std::strncpy(report.message, error.message().c_str(), sizeof(report.message) - 1);
      report.busy_s = busiest_thread_seconds();
      report.ended_ns = ended;
      return;
    }
  }
}

// Four ranks, one of which goes wrong.
class Job {
 public:
  using Body = std::function<void(const RankContext& context, int culprit, Report& report)>;

  Job(const std::string& transport, int culprit, const Body& body, const NamespaceStar* star = nullptr)
      : culprit_(culprit), reports_(kRanks), ranks_(options(transport, star), [&](const RankContext& context) {
          body(context, culprit_, reports_[static_cast<std::size_t>(context.rank)]);
        }) {}

  void release() { ranks_.release(); }
  RankProcesses& ranks() { return ranks_; }
  int culprit() const { return culprit_; }
  const Report& report(int rank) const { return reports_[static_cast<std::size_t>(rank)]; }
  // Waits until a rank has reported, at most that long.
  bool reported(int rank, Duration limit) const {
    const Deadline deadline(system_clock(), limit);
    while (report(rank).ended_ns == 0 && !deadline.expired()) system_clock().sleep_for(milliseconds(5));
    return report(rank).ended_ns != 0;
  }

 private:
  static testing::RankProcessOptions options(const std::string& transport, const NamespaceStar* star) {
    testing::RankProcessOptions options;
    options.transport = transport;
    options.ranks = kRanks;
    options.timeout = kLimit;
    options.held = true;
    if (star != nullptr) options.namespaces = star->names();
    if (star != nullptr) options.interfaces = {"v0"};
    return options;
  }

  const int culprit_;
  SharedArray<Report> reports_;
  RankProcesses ranks_;
};

// The ranks that a message says something about: what follows the last one that "failed first" is that rank's own message.
std::vector<int> blamed_ranks(std::string message) {
  const std::string first = "failed first: ";
  const auto at = message.rfind(first);
  if (at != std::string::npos) message = message.substr(at + first.size());
  std::vector<int> ranks;
  const std::regex blame("rank ([0-9]+) (was lost|has not entered|is silent|is the one|has left)");
  for (std::sregex_iterator found(message.begin(), message.end(), blame), end; found != end; ++found) {
    ranks.push_back(std::stoi((*found)[1]));
  }
  return ranks;
}

// Every rank but the culprit reports in time, counted from `since_ns` or from when its operation began.
void expect_reports(const Job& job, std::int64_t since_ns, bool from_begin, const std::string& words = "") {
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == job.culprit()) continue;
    SCOPED_TRACE(fmt::format("culprit {}, rank {}", job.culprit(), rank));
    ASSERT_TRUE(job.reported(rank, kLimit + seconds(20)));
    const Report& report = job.report(rank);
    EXPECT_THAT(blamed_ranks(report.message), ::testing::ElementsAre(job.culprit())) << report.message;
    EXPECT_THAT(std::string(report.message), HasSubstr(words));
    const bool expected = report.code == static_cast<int>(ErrorCode::kTimeout) ||
                          report.code == static_cast<int>(ErrorCode::kPeerLost) ||
                          report.code == static_cast<int>(ErrorCode::kAborted);
    EXPECT_TRUE(expected) << report.code << " " << report.message;
    const std::int64_t begin = from_begin ? report.began_ns : since_ns;
    EXPECT_LT(to_seconds(Duration(report.ended_ns - begin)), to_seconds(kLimit + seconds(1))) << report.message;
    EXPECT_LT(report.busy_s, to_seconds(kWatch) / 3) << "a thread spins after " << report.message;
  }
}

// A job for each culprit, all at once.
std::vector<std::unique_ptr<Job>> start_jobs(const std::vector<std::string>& transports, const Job::Body& body) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (const std::string& transport : transports) {
    for (int culprit = 0; culprit < kRanks; ++culprit) jobs.push_back(std::make_unique<Job>(transport, culprit, body));
  }
  for (const auto& job : jobs) job->release();
  for (const auto& job : jobs) EXPECT_TRUE(job->ranks().all_started());
  return jobs;
}

void reduce_until_it_fails(const RankContext& context, int, Report& report) {
  const std::span<float> values(static_cast<float*>(context.arena.allocate(800000)), 200000);
  std::fill(values.begin(), values.end(), static_cast<float>(context.rank));
  const Buffer buffer(values);
  run_until_it_fails(report,
                     [&] { all_reduce_async(context.group, buffer, buffer, DType::kFloat32, ReduceOp::kMax).wait(); });
}

// Four ranks hand 64 MiB along a chain that begins at the culprit, in pieces: each waits for the one before it.
Collective chain_from(int culprit, int rank, std::vector<float>& values) {
  spec::CollectiveShape shape;
  shape.ranks = kRanks;
  shape.elements = static_cast<std::int64_t>(values.size());
  shape.root = culprit;
  shape.options.chunk_elements = 16384;
  Collective collective;
  collective.schedule = std::make_shared<const spec::Schedule>(spec::build("broadcast", "chain", shape));
  const Buffer buffer{std::span<float>(values)};
  collective.output = buffer;
  if (rank == culprit) collective.inputs = {buffer};
  return collective;
}

TEST(BusiestThread, IsTheOneThatSpins) {
  EXPECT_LT(busiest_thread_seconds(), to_seconds(kWatch) / 3);
  const std::jthread spinning([](const std::stop_token& stop) {
    while (!stop.stop_requested()) continue;
  });
  EXPECT_GT(busiest_thread_seconds(), to_seconds(kWatch) / 10);
}

class Culprits : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, Culprits, ::testing::Values("shared_memory", "gloo"),
                         [](const auto& info) { return info.param; });

TEST_P(Culprits, AKilledRankIsNamed) {
  const auto jobs = start_jobs({GetParam()}, reduce_until_it_fails);
  system_clock().sleep_for(milliseconds(300));
  for (const auto& job : jobs) {
    const std::int64_t since = now_ns();
    job->ranks().signal(job->culprit(), SIGKILL);
    expect_reports(*job, since, false, "was lost");
  }
}

TEST_P(Culprits, AStoppedRankIsNamed) {
  const auto jobs = start_jobs({GetParam()}, reduce_until_it_fails);
  system_clock().sleep_for(milliseconds(300));
  std::vector<std::int64_t> since;
  for (const auto& job : jobs) {
    since.push_back(now_ns());
    job->ranks().signal(job->culprit(), SIGSTOP);
  }
  for (const auto& job : jobs) expect_reports(*job, since[static_cast<std::size_t>(job->culprit())], false);
}

TEST_P(Culprits, ARankThatStopsInsideAnOperationIsNamedByThoseThatWaitForOthersThatWaitForIt) {
  const auto jobs = start_jobs({GetParam()}, [](const RankContext& context, int culprit, Report& report) {
    std::vector<float> values(std::size_t{16} << 20, static_cast<float>(context.rank));
    barrier(context.group);
    report.began_ns = now_ns();
    Work work = context.group.submit(chain_from(culprit, context.rank, values));
    if (context.rank == culprit) {
      system_clock().sleep_for(milliseconds(5));
      ::kill(::getpid(), SIGSTOP);
    }
    bool waited = false;
    run_until_it_fails(report, [&] {
      if (std::exchange(waited, true)) return barrier(context.group);
      work.wait();
    });
  });
  for (const auto& job : jobs) expect_reports(*job, 0, true, "is silent in broadcast");
}

TEST(LateCulprits, ARankThatComesTenSecondsLateIsNamedAndLearnsOfIt) {
  // Both transports at once, since the test waits for the clock.
  const auto jobs = start_jobs({"shared_memory", "gloo"}, [](const RankContext& context, int culprit, Report& report) {
    barrier(context.group);
    if (context.rank == culprit) system_clock().sleep_for(kLate);
    run_until_it_fails(report, [&] { barrier(context.group); });
  });
  for (const auto& job : jobs) {
    expect_reports(*job, 0, true, "has not entered barrier");
    const int culprit = job->culprit();
    ASSERT_TRUE(job->reported(culprit, kLate + seconds(5))) << "culprit " << culprit;
    const Report& report = job->report(culprit);
    EXPECT_EQ(report.code, static_cast<int>(ErrorCode::kAborted)) << report.message;
    EXPECT_THAT(std::string(report.message), HasSubstr(fmt::format("rank {} has not entered barrier", culprit)));
    EXPECT_LT(to_seconds(Duration(report.ended_ns - report.began_ns)), 1.0) << report.message;
  }
}

TEST(CutCulprits, ARankThatIsCutOffIsNamed) {
  std::vector<std::unique_ptr<NamespaceStar>> stars;
  for (int culprit = 0; culprit < kRanks; ++culprit) {
    stars.push_back(std::make_unique<NamespaceStar>(culprit, kRanks));
    if (!stars.back()->problem().empty()) GTEST_SKIP() << stars.back()->problem();
  }
  std::vector<std::unique_ptr<Job>> jobs;
  for (int culprit = 0; culprit < kRanks; ++culprit) {
    const NamespaceStar* const star = stars[static_cast<std::size_t>(culprit)].get();
    jobs.push_back(std::make_unique<Job>("gloo", culprit, reduce_until_it_fails, star));
  }
  for (const auto& job : jobs) job->release();
  for (const auto& job : jobs) ASSERT_TRUE(job->ranks().all_started());
  system_clock().sleep_for(milliseconds(300));
  std::vector<std::int64_t> since;
  for (const auto& job : jobs) {
    since.push_back(now_ns());
    ASSERT_TRUE(stars[static_cast<std::size_t>(job->culprit())]->cut(job->culprit()));
  }
  for (const auto& job : jobs) expect_reports(*job, since[static_cast<std::size_t>(job->culprit())], false);
}

}  // namespace
}  // namespace convoy::comm

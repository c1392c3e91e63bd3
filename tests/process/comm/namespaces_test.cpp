// Two hosts, as two network namespaces: ranks that another launcher started meet over TCP and move bytes over Gloo.
#include "tests/support/namespaces.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/job.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TwoNamespaces;

// How a rank ended.
struct Ending {
  int code = -1;  // 100: without an error
  char message[500] = {};
};

// The environment that a launcher such as torchrun gives.
struct Started {
  std::string master;
  std::string port = "29571";
  TransportChoice transport{"gloo", {}};
  Duration timeout = seconds(20);
  bool other_host_name = false;
};

// Two ranks, one in each namespace.
class TwoHosts {
 public:
  using Body = std::function<void(Group& group)>;

  TwoHosts(const Started& started, const Body& body) {
    for (int rank = 0; rank < 2; ++rank) {
      int result[2];
      if (::pipe(result) != 0) throw Error(ErrorCode::kIo, "no pipe");
      const std::string host = TwoNamespaces::name(rank);
      const pid_t pid = ::fork();
      if (pid == 0) run_child(rank, host, started, body, result[1]);
      ::close(result[1]);
      pids_.push_back(pid);
      results_.push_back(result[0]);
    }
  }
  ~TwoHosts() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
    for (const int result : results_) ::close(result);
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  // Waits for a rank's end and returns what it said.
  Ending ending(int rank) {
    Ending ending;
    const auto r = static_cast<std::size_t>(rank);
    if (::read(results_[r], &ending, sizeof(ending)) != static_cast<ssize_t>(sizeof(ending))) ending.code = -2;
    ::waitpid(pids_[r], nullptr, 0);
    pids_[r] = 0;
    return ending;
  }
  void expect_success() {
    for (int rank = 0; rank < 2; ++rank) {
      const Ending one = ending(rank);
      EXPECT_EQ(one.code, 100) << "rank " << rank << ": " << one.message;
    }
  }

 private:
  [[noreturn]] static void run_child(int rank, const std::string& host, const Started& started, const Body& body,
                                     int result) {
    ::alarm(60);
    Ending ending;
    try {
      CONVOY_CHECK(TwoNamespaces::enter(host), "the rank is in its namespace");
      if (started.other_host_name) {
        CONVOY_CHECK(::unshare(CLONE_NEWUTS) == 0 && ::sethostname(host.data(), host.size()) == 0, "a host has a name");
      }
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", "2", 1);
      ::setenv("MASTER_ADDR", started.master.c_str(), 1);
      ::setenv("MASTER_PORT", started.port.c_str(), 1);
      ::setenv("CONVOY_JOB_TOKEN", "a secret of this test", 1);
      const JobEnvironment job = read_job_environment();
      const auto store = connect_store(job, seconds(20));
      GroupOptions options;
      options.timeout = started.timeout;
      const auto group = join_group(job, *store, options, started.transport);
      body(*group);
      ending.code = 100;
    } catch (const Error& error) {
      ending.code = static_cast<int>(error.code());
      std::strncpy(ending.message, error.message().c_str(), sizeof(ending.message) - 1);
    }
    const ssize_t wrote = ::write(result, &ending, sizeof(ending));
    ::_exit(wrote == static_cast<ssize_t>(sizeof(ending)) ? 0 : 1);
  }

  std::vector<pid_t> pids_;
  std::vector<int> results_;
};

void sum_and_compare(Group& group) {
  CONVOY_CHECK(group.hosts() == spec::HostOfRank({0, 1}), "two network namespaces are two hosts");
  std::vector<float> values(1000003);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000 + 7) * (1 + group.rank());
    const Buffer buffer{std::span<float>(values)};
    all_reduce_async(group, buffer, buffer, DType::kFloat32).wait();
    for (std::size_t i = 0; i < values.size(); ++i) {
      CONVOY_CHECK(values[i] == static_cast<float>(i % 1000 + 7) * 3, "the sum is right");
    }
  }
}

// The bytes that came in over an interface of this process's namespace.
std::int64_t received_bytes(const std::string& interface) {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(interface + ":");
    if (at == std::string::npos) continue;
    std::istringstream numbers(line.substr(at + interface.size() + 1));
    std::int64_t bytes = -1;
    numbers >> bytes;
    return bytes;
  }
  return -1;
}

class Namespaces : public ::testing::Test {
 protected:
  void need(int links) {
    hosts_ = std::make_unique<TwoNamespaces>(links);
    if (!hosts_->problem().empty()) GTEST_SKIP() << hosts_->problem();
  }

 private:
  std::unique_ptr<TwoNamespaces> hosts_;
};

TEST_F(Namespaces, RanksMeetAndSumOverBothFamilies) {
  ASSERT_NO_FATAL_FAILURE(need(1));
  if (IsSkipped()) return;
  for (const char* master : {"10.77.0.1", "fd77:0::1", "[fd77::1]"}) {
    TwoHosts ranks(Started{.master = master}, sum_and_compare);
    ranks.expect_success();
  }
}

TEST_F(Namespaces, InterfacesAreChosenByNameAndFamily) {
  ASSERT_NO_FATAL_FAILURE(need(1));
  if (IsSkipped()) return;
  for (const char* interface : {"v0", "v0/ipv4", "v0/ipv6"}) {
    TwoHosts ranks(Started{.master = "10.77.0.1", .transport = {"gloo", {interface}}}, sum_and_compare);
    ranks.expect_success();
  }
  TwoHosts ranks(Started{.master = "10.77.0.1", .transport = {"gloo", {"eth7"}}}, sum_and_compare);
  const Ending ending = ranks.ending(0);
  EXPECT_EQ(ending.code, static_cast<int>(ErrorCode::kInvalidArgument));
  EXPECT_NE(std::string(ending.message).find("'eth7'"), std::string::npos) << ending.message;
  EXPECT_NE(std::string(ending.message).find("v0 (10.77.0.1)"), std::string::npos) << ending.message;
}

TEST_F(Namespaces, TwoInterfacesBothCarryBytes) {
  ASSERT_NO_FATAL_FAILURE(need(2));
  if (IsSkipped()) return;
  TwoHosts ranks(Started{.master = "10.77.0.1", .transport = {"gloo", {"v0", "v1"}}}, [](Group& group) {
    std::vector<float> values(4 << 20, 1.0F);
    const Buffer buffer{std::span<float>(values)};
    for (int round = 0; round < 4; ++round) all_reduce_async(group, buffer, buffer, DType::kFloat32).wait();
    CONVOY_CHECK(std::all_of(values.begin(), values.end(), [](float value) { return value == 16.0F; }), "sums");
    const std::int64_t first = received_bytes("v0");
    const std::int64_t second = received_bytes("v1");
    CONVOY_CHECK(first > 0 && second > 0, "both interfaces count");
    const std::string counts = fmt::format("v0 got {} bytes and v1 {}", first, second);
    CONVOY_CHECK(std::min(first, second) * 10 > std::max(first, second), counts);
  });
  ranks.expect_success();
}

TEST_F(Namespaces, ACutConnectionNamesTheRankBehindIt) {
  ASSERT_NO_FATAL_FAILURE(need(1));
  if (IsSkipped()) return;
  TwoHosts ranks(Started{.master = "10.77.0.1", .timeout = seconds(3)}, [](Group& group) {
    std::vector<float> values(100000, 1.0F);
    const Buffer buffer{std::span<float>(values)};
    while (true) all_reduce_async(group, buffer, buffer, DType::kFloat32, ReduceOp::kMax).wait();
  });
  std::this_thread::sleep_for(milliseconds(700));
  ASSERT_TRUE(TwoNamespaces::ip(0, "link set v0 down"));
  for (int rank = 0; rank < 2; ++rank) {
    const Ending ending = ranks.ending(rank);
    EXPECT_TRUE(ending.code == static_cast<int>(ErrorCode::kTimeout) ||
                ending.code == static_cast<int>(ErrorCode::kPeerLost))
        << ending.code << " " << ending.message;
    EXPECT_NE(std::string(ending.message).find(fmt::format("rank {}", 1 - rank)), std::string::npos) << ending.message;
    EXPECT_EQ(std::string(ending.message).find(fmt::format("rank {} ", rank)), std::string::npos) << ending.message;
  }
}

TEST_F(Namespaces, SharedMemoryAcrossHostsIsRefusedWithBothNames) {
  ASSERT_NO_FATAL_FAILURE(need(1));
  if (IsSkipped()) return;
  TwoHosts ranks(Started{.master = "10.77.0.1", .transport = {"shared_memory", {}}, .other_host_name = true},
                 sum_and_compare);
  for (int rank = 0; rank < 2; ++rank) {
    const Ending ending = ranks.ending(rank);
    EXPECT_EQ(ending.code, static_cast<int>(ErrorCode::kInvalidArgument)) << ending.message;
    for (int host = 0; host < 2; ++host) {
      EXPECT_NE(std::string(ending.message).find(TwoNamespaces::name(host)), std::string::npos) << ending.message;
    }
  }
}

}  // namespace
}  // namespace convoy::comm

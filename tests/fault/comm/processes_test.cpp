// Real processes, over shared memory and over sockets: killed, stopped, gone; and what they leave behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "convoy/comm/gloo/gloo_transport.h"
#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/comm/shared_memory/shared_memory_transport.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Returns this rank's end of a group over the named transport.
std::unique_ptr<Transport> make_transport(const std::string& name, Store& store, int rank, int ranks,
                                          SharedArena* arena) {
  if (name == "gloo") {
    GlooOptions gloo;
    gloo.limit = seconds(20);
    return make_gloo_transport(store, rank, ranks, gloo);
  }
  SharedMemoryOptions shared;
  shared.arena = arena;
  shared.limit = seconds(20);
  return make_shared_memory_transport(store, rank, ranks, shared);
}

// What a rank's process tells the test: how it ended, and after how long.
struct Ending {
  int code = -1;
  double seconds = 0.0;
  char message[400] = {};
};

// Ranks as processes. They are forked before this process has any thread, and meet in a store that is served
// afterwards.
class RankProcesses {
 public:
  using Body = std::function<void(Group& group, int rank, SharedArena& arena)>;

  RankProcesses(const std::string& transport, int ranks, Duration timeout, const Body& body) {
    std::vector<int> gates;
    for (int rank = 0; rank < ranks; ++rank) {
      int result[2];
      int gate[2];
      if (::pipe(result) != 0 || ::pipe(gate) != 0) throw Error(ErrorCode::kIo, "no pipe");
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::close(result[0]);
        ::close(gate[1]);
        run_child(transport, rank, ranks, timeout, body, gate[0], result[1]);
      }
      ::close(result[1]);
      ::close(gate[0]);
      pids_.push_back(pid);
      results_.push_back(result[0]);
      gates.push_back(gate[1]);
    }
    server_ = std::make_unique<StoreServer>();
    const std::string invitation = server_->address() + " " + server_->token() + "\n";
    for (const int gate : gates) {
      EXPECT_EQ(::write(gate, invitation.data(), invitation.size()), static_cast<ssize_t>(invitation.size()));
      ::close(gate);
    }
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : pids_) {
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
    for (const int result : results_) ::close(result);
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }
  Store& store() { return server_->store(); }
  // Waits for a rank's end and returns what it said.
  Ending ending(int rank) {
    Ending ending;
    const auto r = static_cast<std::size_t>(rank);
    const ssize_t got = ::read(results_[r], &ending, sizeof(ending));
    if (got != static_cast<ssize_t>(sizeof(ending))) ending.code = -2;
    ::waitpid(pids_[r], nullptr, 0);
    pids_[r] = 0;
    return ending;
  }

 private:
  [[noreturn]] static void run_child(const std::string& transport, int rank, int ranks, Duration timeout,
                                     const Body& body, int gate, int result) {
    ::alarm(60);
    Ending ending;
    const TimePoint begin = system_clock().now();
    try {
      char text[300] = {};
      if (::read(gate, text, sizeof(text) - 1) <= 0) ::_exit(1);
      std::string line(text);
      const std::string address = line.substr(0, line.find(' '));
      const std::string token = line.substr(line.find(' ') + 1, 32);
      StoreClient store(address, token, seconds(10));
      SharedArena arena(std::size_t{64} << 20);
      GroupOptions options;
      options.timeout = timeout;
      const auto group = make_group(make_transport(transport, store, rank, ranks, &arena), options);
      store.add("started", 1);
      body(*group, rank, arena);
      ending.code = 100;
    } catch (const Error& error) {
      ending.code = static_cast<int>(error.code());
      std::strncpy(ending.message, error.message().c_str(), sizeof(ending.message) - 1);
    }
    ending.seconds = to_seconds(system_clock().now() - begin);
    const ssize_t wrote = ::write(result, &ending, sizeof(ending));
    ::_exit(wrote == static_cast<ssize_t>(sizeof(ending)) ? 0 : 1);
  }

  std::vector<pid_t> pids_;
  std::vector<int> results_;
  std::unique_ptr<StoreServer> server_;
};

// Reduces again and again, in memory that peers read in place.
void reduce_for_ever(Group& group, int rank, SharedArena& arena) {
  const std::span<float> values(static_cast<float*>(arena.allocate(800000)), 200000);
  std::fill(values.begin(), values.end(), static_cast<float>(rank));
  const Buffer buffer(values);
  while (true) all_reduce_async(group, buffer, buffer, DType::kFloat32, ReduceOp::kMax).wait();
}

std::vector<std::string> shared_memory_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) names.push_back(entry.path().string());
  return names;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.path().empty() ? 0 : 1;
  return count;
}

int threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return -1;
}

void wait_for_start(Store& store, int ranks) {
  const Deadline deadline(system_clock(), seconds(20));
  while (store.add("started", 0) < ranks && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
  std::this_thread::sleep_for(milliseconds(200));
}

class Processes : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, Processes, ::testing::Values("shared_memory", "gloo"),
                         [](const auto& info) { return info.param; });

TEST_P(Processes, KilledRankEndsTheSurvivorsInTimeAndIsNamed) {
  const auto before = shared_memory_files();
  const std::size_t descriptors = open_descriptors();
  {
    RankProcesses ranks(GetParam(), 3, seconds(2), reduce_for_ever);
    wait_for_start(ranks.store(), 3);
    const TimePoint killed = system_clock().now();
    ranks.signal(1, SIGKILL);
    for (const int rank : {0, 2}) {
      const Ending ending = ranks.ending(rank);
      EXPECT_TRUE(ending.code == static_cast<int>(ErrorCode::kPeerLost) ||
                  ending.code == static_cast<int>(ErrorCode::kAborted))
          << ending.code << " " << ending.message;
      EXPECT_NE(std::string(ending.message)
                    .find(GetParam() == "gloo" ? "rank 1 was lost: its connection has ended"
                                               : "rank 1 was lost: its process has ended"),
                std::string::npos)
          << ending.message;
    }
    EXPECT_LT(system_clock().now() - killed, seconds(3));
  }
  EXPECT_EQ(shared_memory_files(), before);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST_P(Processes, StoppedRankIsNamedWhenTheDeadlineIsOver) {
  RankProcesses ranks(GetParam(), 3, seconds(2), reduce_for_ever);
  wait_for_start(ranks.store(), 3);
  const TimePoint stopped = system_clock().now();
  ranks.signal(2, SIGSTOP);
  for (const int rank : {0, 1}) {
    const Ending ending = ranks.ending(rank);
    const std::string message = ending.message;
    EXPECT_TRUE(ending.code == static_cast<int>(ErrorCode::kTimeout) ||
                ending.code == static_cast<int>(ErrorCode::kAborted))
        << ending.code << " " << message;
    EXPECT_NE(message.find("gave up after 2."), std::string::npos) << message;
    EXPECT_NE(message.find(": rank 2 "), std::string::npos) << message;
    EXPECT_NE(message.find("last sign of life"), std::string::npos) << message;
    EXPECT_EQ(message.find("rank 0 has"), std::string::npos) << message;
    EXPECT_EQ(message.find("rank 1 has"), std::string::npos) << message;
  }
  EXPECT_LT(system_clock().now() - stopped, seconds(4));
}

TEST_P(Processes, RankThatExitsIsNamedByAllOthers) {
  RankProcesses ranks(GetParam(), 4, seconds(20), [](Group& group, int rank, SharedArena&) {
    for (int round = 0; round < 5; ++round) barrier(group);
    if (rank == 2) return;
    for (int round = 0; round < 5; ++round) barrier(group);
  });
  const TimePoint begin = system_clock().now();
  EXPECT_EQ(ranks.ending(2).code, 100);
  for (const int rank : {0, 1, 3}) {
    const Ending ending = ranks.ending(rank);
    EXPECT_NE(std::string(ending.message).find("rank 2 was lost"), std::string::npos) << ending.message;
  }
  EXPECT_LT(system_clock().now() - begin, seconds(10));
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

TEST_P(Processes, WhoWaitsLeavesTheProcessorToOthers) {
  RankProcesses ranks(GetParam(), 2, seconds(20), [](Group& group, int rank, SharedArena&) {
    barrier(group);
    if (rank == 1) std::this_thread::sleep_for(seconds(2));
    const double before = processor_seconds();
    barrier(group);
    if (rank == 0) CONVOY_CHECK(processor_seconds() - before < 1.0, "a wait of 2 s takes no second of processor time");
  });
  for (int rank = 0; rank < 2; ++rank) {
    const Ending ending = ranks.ending(rank);
    EXPECT_EQ(ending.code, 100) << ending.message;
  }
}

TEST_P(Processes, ReduceThroughEachOthersMemory) {
  RankProcesses ranks(GetParam(), 3, seconds(20), [](Group& group, int rank, SharedArena& arena) {
    // One payload is read in place, the other one is copied.
    auto* const shared = static_cast<double*>(arena.allocate(80000));
    std::vector<double> plain(100001, 1.0 + rank);
    for (int round = 0; round < 5; ++round) {
      std::fill_n(shared, 10000, rank + round);
      const Buffer one{std::span<double>(shared, 10000)};
      all_reduce_async(group, one, one, DType::kFloat64).wait();
      for (int i = 0; i < 10000; ++i) CONVOY_CHECK(shared[i] == 3.0 + 3.0 * round, "the sum is right");
      std::fill(plain.begin(), plain.end(), 1.0 + rank);
      const Buffer two{std::span<double>(plain)};
      all_reduce_async(group, two, two, DType::kFloat64, ReduceOp::kMean).wait();
      for (const double value : plain) CONVOY_CHECK(value == 2.0, "the mean is right");
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Ending ending = ranks.ending(rank);
    EXPECT_EQ(ending.code, 100) << ending.message;
  }
}

TEST_P(Processes, GroupsThatComeAndGoLeaveNothingBehind) {
  MemoryStore store;
  const auto cycle = [&](int rank) {
    const auto group = make_group(make_transport(GetParam(), store, rank, 2, nullptr), GroupOptions());
    EXPECT_EQ(all_reduce_number(*group, 1.0 + rank, ReduceOp::kSum), 3.0);
  };
  testing::run_ranks(2, [&](int rank) {
    for (int repeat = 0; repeat < 5; ++repeat) cycle(rank);
  });
  const std::size_t descriptors = open_descriptors();
  const int threads = threads_of_process();
  const std::int64_t resident = resident_kib();
  testing::run_ranks(2, [&](int rank) {
    for (int repeat = 0; repeat < 200; ++repeat) cycle(rank);
  });
  EXPECT_LE(open_descriptors(), descriptors + 2);
  EXPECT_LE(threads_of_process(), threads);
#ifndef CONVOY_SANITIZED
  EXPECT_LT(resident_kib() - resident, 5 * 1024);
#endif
  (void)resident;
}

}  // namespace
}  // namespace convoy::comm

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

#include "convoy/comm/group.h"
#include "tests/support/rank_processes.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RankContext;
using testing::RankEnding;
using testing::RankProcesses;
using testing::RankProcessOptions;

// Ranks as processes over the named transport.
RankProcessOptions options_of(const std::string& transport, int ranks, Duration timeout) {
  RankProcessOptions options;
  options.transport = transport;
  options.ranks = ranks;
  options.timeout = timeout;
  return options;
}
RankProcesses start(const std::string& transport, int ranks, Duration timeout, const RankProcesses::Body& body) {
  return RankProcesses(options_of(transport, ranks, timeout), body);
}

// Reduces again and again, in memory that peers read in place.
void reduce_for_ever(const RankContext& context) {
  const std::span<float> values(static_cast<float*>(context.arena.allocate(800000)), 200000);
  std::fill(values.begin(), values.end(), static_cast<float>(context.rank));
  const Buffer buffer(values);
  while (true) all_reduce_async(context.group, buffer, buffer, DType::kFloat32, ReduceOp::kMax).wait();
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
    RankProcesses ranks = start(GetParam(), 3, seconds(2), reduce_for_ever);
    wait_for_start(ranks.store(), 3);
    const TimePoint killed = system_clock().now();
    ranks.signal(1, SIGKILL);
    for (const int rank : {0, 2}) {
      const RankEnding ending = ranks.ending(rank);
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
  RankProcesses ranks = start(GetParam(), 3, seconds(2), reduce_for_ever);
  wait_for_start(ranks.store(), 3);
  const TimePoint stopped = system_clock().now();
  ranks.signal(2, SIGSTOP);
  for (const int rank : {0, 1}) {
    const RankEnding ending = ranks.ending(rank);
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
  RankProcesses ranks = start(GetParam(), 4, seconds(20), [](const RankContext& context) {
    Group& group = context.group;
    for (int round = 0; round < 5; ++round) barrier(group);
    if (context.rank == 2) return;
    for (int round = 0; round < 5; ++round) barrier(group);
  });
  const TimePoint begin = system_clock().now();
  EXPECT_EQ(ranks.ending(2).code, 100);
  for (const int rank : {0, 1, 3}) {
    const RankEnding ending = ranks.ending(rank);
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
  RankProcesses ranks = start(GetParam(), 2, seconds(20), [](const RankContext& context) {
    Group& group = context.group;
    barrier(group);
    if (context.rank == 1) std::this_thread::sleep_for(seconds(2));
    const double before = processor_seconds();
    barrier(group);
    if (context.rank == 0)
      CONVOY_CHECK(processor_seconds() - before < 1.0, "a wait of 2 s takes no second of processor time");
  });
  for (int rank = 0; rank < 2; ++rank) {
    const RankEnding ending = ranks.ending(rank);
    EXPECT_EQ(ending.code, 100) << ending.message;
  }
}

TEST_P(Processes, ReduceThroughEachOthersMemory) {
  RankProcesses ranks = start(GetParam(), 3, seconds(20), [](const RankContext& context) {
    Group& group = context.group;
    // One payload is read in place, the other one is copied.
    auto* const shared = static_cast<double*>(context.arena.allocate(80000));
    std::vector<double> plain(100001, 1.0 + context.rank);
    for (int round = 0; round < 5; ++round) {
      std::fill_n(shared, 10000, context.rank + round);
      const Buffer one{std::span<double>(shared, 10000)};
      all_reduce_async(group, one, one, DType::kFloat64).wait();
      for (int i = 0; i < 10000; ++i) CONVOY_CHECK(shared[i] == 3.0 + 3.0 * round, "the sum is right");
      std::fill(plain.begin(), plain.end(), 1.0 + context.rank);
      const Buffer two{std::span<double>(plain)};
      all_reduce_async(group, two, two, DType::kFloat64, ReduceOp::kMean).wait();
      for (const double value : plain) CONVOY_CHECK(value == 2.0, "the mean is right");
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    const RankEnding ending = ranks.ending(rank);
    EXPECT_EQ(ending.code, 100) << ending.message;
  }
}

TEST_P(Processes, GroupsThatComeAndGoLeaveNothingBehind) {
  MemoryStore store;
  const RankProcessOptions options = options_of(GetParam(), 2, seconds(20));
  const auto cycle = [&](int rank) {
    const auto group = make_group(testing::transport_of(options, store, rank, nullptr), GroupOptions());
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

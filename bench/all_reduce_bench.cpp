// Times all-reduce between processes of one host, over shared memory and over sockets (Gloo): latency of small sizes,
// bandwidth of large ones.
//
// Timed is submit() to the return of wait() on rank 0, all ranks starting from a barrier; 5 repetitions are warm-up.
// Bus bandwidth counts 2 (W-1)/W of the bytes, what a rank must send at least.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "convoy/base/text.h"
#include "convoy/comm/gloo/gloo_transport.h"
#include "convoy/comm/gloo/link.h"
#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/comm/shared_memory/shared_memory_transport.h"

namespace convoy::comm {
namespace {

constexpr int kWarmUp = 5;
constexpr std::int64_t kLargest = std::int64_t{64} << 20;

struct Timing {
  double median_us = 0.0;
  double p95_us = 0.0;
};

Timing time_all_reduce(Group& group, float* memory, std::int64_t bytes, int repeats) {
  const Buffer buffer{std::span<float>(memory, static_cast<std::size_t>(bytes) / sizeof(float))};
  std::vector<double> times;
  for (int i = 0; i < repeats + kWarmUp; ++i) {
    barrier(group);
    const TimePoint begin = system_clock().now();
    all_reduce_async(group, buffer, buffer, DType::kFloat32, ReduceOp::kMean).wait();
    if (i >= kWarmUp) times.push_back(to_ms(system_clock().now() - begin) * 1e3);
  }
  std::sort(times.begin(), times.end());
  return Timing{times[times.size() / 2], times[times.size() * 95 / 100]};
}

// What is timed: a transport, and where its users have their buffers.
struct Kind {
  const char* words;
  bool gloo = false;
  bool arena_buffers = false;
};

void run_rank(const std::string& address, const std::string& token, int rank, int ranks, const Kind& kind) {
  StoreClient store(address, token, std::chrono::seconds(10));
  auto transport =
      kind.gloo ? make_gloo_transport(store, rank, ranks) : make_shared_memory_transport(store, rank, ranks);
  const auto group = make_group(std::move(transport), GroupOptions());
  std::vector<float> plain;
  float* memory = nullptr;
  if (kind.arena_buffers) {
    memory = static_cast<float*>(process_arena().allocate(kLargest));
  } else {
    plain.resize(kLargest / sizeof(float));
    memory = plain.data();
  }
  std::fill_n(memory, kLargest / static_cast<std::int64_t>(sizeof(float)), 1.0F + static_cast<float>(rank));
  TextTable table({"bytes", "median us", "p95 us", "bus GB/s"});
  for (std::int64_t bytes = 4; bytes <= kLargest; bytes *= 4) {
    const Timing timing = time_all_reduce(*group, memory, bytes, bytes < (1 << 20) ? 500 : 30);
    const double moved = static_cast<double>(bytes) * 2.0 * (ranks - 1) / ranks;
    table.add({format_bytes(static_cast<std::uint64_t>(bytes)), fmt::format("{:.1f}", timing.median_us),
               fmt::format("{:.1f}", timing.p95_us), fmt::format("{:.2f}", moved / timing.median_us * 1e-3)});
  }
  if (rank == 0) {
    fmt::print("{} ranks, {}\n{}\n", ranks, kind.words, table.str());
    std::fflush(stdout);
  }
}

// Forks the ranks while this process has no other thread, then serves their store until they are done.
int run_all(int ranks, const Kind& kind) {
  int gate[2];
  if (::pipe(gate) != 0) return 1;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      char line[128] = {};
      if (::read(gate[0], line, sizeof(line)) != static_cast<ssize_t>(sizeof(line))) ::_exit(1);
      const std::string text(line);
      run_rank(text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1), rank, ranks, kind);
      ::_exit(0);
    }
    pids.push_back(pid);
  }
  const StoreServer server;
  char line[128] = {};
  std::strncpy(line, (server.address() + " " + server.token()).c_str(), sizeof(line) - 1);
  for (int rank = 0; rank < ranks; ++rank) {
    if (::write(gate[1], line, sizeof(line)) != static_cast<ssize_t>(sizeof(line))) return 1;
  }
  int failures = 0;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    failures += status == 0 ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace convoy::comm

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 1) {
    fmt::print(stderr, "usage: all_reduce_bench [ranks]\n");
    return 2;
  }
  using convoy::comm::run_all;
  int failures = run_all(ranks, {.words = "shared memory, buffers in the arena", .arena_buffers = true});
  failures += run_all(ranks, {.words = "shared memory, buffers outside the arena"});
  if (convoy::comm::has_gloo()) failures += run_all(ranks, {.words = "gloo", .gloo = true});
  return failures;
}

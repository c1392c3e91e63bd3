// Measures collectives between two hosts with two ranks each: network namespaces that a link of a known rate joins.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/builder.h"
#include "tests/support/namespaces.h"
#include "tests/support/rank_processes.h"
#include "tests/support/shared_array.h"

namespace convoy::testing {

constexpr std::size_t kHosts = 2;
constexpr int kHostRanks = 4;
/// Ranks 0 and 1 are on one host, 2 and 3 on the other.
inline const spec::HostOfRank kHostOfRank = {0, 0, 1, 1};

/// An operation that is measured; its elements are float32.
struct Measured {
  std::string label;
  std::shared_ptr<const spec::Schedule> schedule;
  /// Whether all ranks have the sum at the end, which is checked.
  bool sums = false;
};

/// One operation, as it was measured.
struct HostRun {
  /// From the common start until the last rank was done.
  double seconds = 0;
  /// Payload bytes that each rank sent, as the transport counts them.
  std::array<std::int64_t, kHostRanks> sent{};
  /// Of these, what each host's ranks sent to the other host; and the bytes that went out over its interface.
  std::array<std::int64_t, kHosts> payload{};
  std::array<std::int64_t, kHosts> interface {};
};

/// Returns the shape of an all-reduce over both hosts.
inline spec::CollectiveShape two_host_shape(std::int64_t elements, const spec::CollectiveOptions& options) {
  spec::CollectiveShape shape;
  shape.ranks = kHostRanks;
  shape.elements = elements;
  shape.hosts = kHostOfRank;
  shape.options = options;
  return spec::with_defaults(shape);
}

/// Returns messages that pairs of ranks send each other at once, `times` after each other.
inline Measured exchanges(const std::vector<std::pair<int, int>>& pairs, std::int64_t elements, int times) {
  spec::ScheduleBuilder builder("p2p", "exchanges", kHostRanks, elements);
  const spec::View input = spec::buffer_view(spec::BufferKind::kInput);
  const spec::View output = spec::buffer_view(spec::BufferKind::kOutput);
  for (int round = 0; round < times; ++round) {
    for (const auto& [a, b] : pairs) {
      builder.transfer(round, a, input(a, {0, elements}), b, output(b, {0, elements}));
      builder.transfer(round, b, input(b, {0, elements}), a, output(a, {0, elements}));
    }
  }
  return {"exchanges", std::make_shared<spec::Schedule>(builder.finish()), false};
}

/// Returns half of the runs' seconds or less.
inline double median_seconds(const std::vector<HostRun>& runs) {
  std::vector<double> seconds;
  for (const HostRun& run : runs) seconds.push_back(run.seconds);
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Runs operations in turn, once more than they are counted, in ranks of its own.
class TwoHostBench {
 public:
  /// Prepares `repeats` runs of each.
  TwoHostBench(std::vector<Measured> operations, std::size_t repeats)
      : operations_(std::move(operations)),
        repeats_(repeats),
        barrier_(kHostRanks),
        runs_(operations_.size() * (repeats + 1)) {}

  /// Starts the ranks on both sides of link 0 and waits for their end. Before the operations each rank calls
  /// `first(rank, barrier)`.
  /// Errors:     kInternal with the message of the first rank that failed
  void run(const std::function<void(int rank, const SharedBarrier& barrier)>& first = {}) const {
    RankProcessOptions options;
    options.transport = "gloo";
    options.ranks = kHostRanks;
    options.interfaces = {"v0"};
    options.limit_s = 120;
    for (const int host : kHostOfRank) options.namespaces.push_back(TwoNamespaces::name(host));
    RankProcesses ranks(options, [&](const RankContext& context) {
      if (first) first(context.rank, barrier_);
      measure(context);
    });
    std::string failure;
    for (int rank = 0; rank < kHostRanks && failure.empty(); ++rank) {
      const RankEnding ending = ranks.ending(rank);
      if (ending.code != 100) failure = fmt::format("rank {} (code {}): {}", rank, ending.code, ending.message);
    }
    if (!failure.empty()) throw Error(ErrorCode::kInternal, failure);
  }

  /// Returns what was measured of an operation.
  std::vector<HostRun> runs(std::size_t operation) const {
    std::vector<HostRun> runs;
    for (std::size_t repeat = 1; repeat <= repeats_; ++repeat) {
      const RawRun& raw = raw_run(operation, repeat);
      HostRun run;
      const std::int64_t begin = *std::min_element(raw.begin.begin(), raw.begin.end());
      const std::int64_t end = *std::max_element(raw.end.begin(), raw.end.end());
      run.seconds = 1e-9 * static_cast<double>(end - begin);
      run.sent = raw.sent;
      run.interface = raw.interface;
      for (std::size_t rank = 0; rank < kHostRanks; ++rank) {
        run.payload[static_cast<std::size_t>(kHostOfRank[rank])] += raw.sent_away[rank];
      }
      runs.push_back(run);
    }
    return runs;
  }

 private:
  // What the ranks say of one run.
  struct RawRun {
    std::array<std::int64_t, kHostRanks> begin, end, sent, sent_away;
    std::array<std::int64_t, kHosts> interface;
  };

  RawRun& raw_run(std::size_t operation, std::size_t repeat) const {
    return runs_[operation * (repeats_ + 1) + repeat];
  }

  void measure(const RankContext& context) const {
    std::int64_t most = 0;
    for (const Measured& one : operations_) most = std::max(most, one.schedule->elements);
    std::vector<float> input(static_cast<std::size_t>(most));
    std::vector<float> output(input.size());
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<float>(i % 1000 + 1) * (1.0F + rank_of(context));
    for (std::size_t repeat = 0; repeat <= repeats_; ++repeat) {
      for (std::size_t at = 0; at < operations_.size(); ++at) {
        std::fill(output.begin(), output.end(), -1.0F);
        run_once(context, operations_[at], input, output, raw_run(at, repeat));
        if (!operations_[at].sums) continue;
        for (std::size_t i = 0; i < static_cast<std::size_t>(operations_[at].schedule->elements); ++i) {
          CONVOY_CHECK(output[i] == static_cast<float>(i % 1000 + 1) * 10, "the sum is right");
        }
      }
    }
  }

  void run_once(const RankContext& context, const Measured& what, std::vector<float>& input, std::vector<float>& output,
                RawRun& run) const {
    const auto rank = static_cast<std::size_t>(context.rank);
    const auto host = static_cast<std::size_t>(kHostOfRank[rank]);
    const auto elements = static_cast<std::size_t>(what.schedule->elements);
    comm::Collective collective;
    collective.schedule = what.schedule;
    collective.inputs = {comm::Buffer{std::span<float>(input.data(), elements)}};
    collective.output = comm::Buffer{std::span<float>(output.data(), elements)};
    const std::int64_t sent = payload(context, false);
    const std::int64_t sent_away = payload(context, true);
    barrier_.meet();
    const std::int64_t counted = interface_bytes();
    barrier_.meet();
    run.begin[rank] = now_ns();
    context.group.run(std::move(collective));
    run.end[rank] = now_ns();
    barrier_.meet();
    run.sent[rank] = payload(context, false) - sent;
    run.sent_away[rank] = payload(context, true) - sent_away;
    if (rank % 2 == 0) run.interface[host] = interface_bytes() - counted;
    barrier_.meet();
  }

  static float rank_of(const RankContext& context) { return static_cast<float>(context.rank); }
  static std::int64_t now_ns() {
    return std::chrono::duration_cast<Duration>(system_clock().now().time_since_epoch()).count();
  }
  // The payload bytes that a rank has sent; only to the other host where it says so.
  static std::int64_t payload(const RankContext& context, bool away) {
    std::uint64_t bytes = 0;
    for (int peer = 0; peer < kHostRanks; ++peer) {
      const bool other =
          kHostOfRank[static_cast<std::size_t>(peer)] != kHostOfRank[static_cast<std::size_t>(context.rank)];
      if (peer != context.rank && (other || !away)) bytes += context.transport.sent_bytes(peer);
    }
    return static_cast<std::int64_t>(bytes);
  }
  // The bytes that have gone out over link 0 of this process's namespace.
  static std::int64_t interface_bytes() {
    std::ifstream file("/proc/self/net/dev");
    for (std::string line; std::getline(file, line);) {
      const auto at = line.find("v0:");
      if (at == std::string::npos) continue;
      std::istringstream numbers(line.substr(at + 3));
      std::int64_t number = -1;
      for (int field = 0; field < 9; ++field) numbers >> number;  // the ninth counts what was sent
      return number;
    }
    return -1;
  }

  const std::vector<Measured> operations_;
  const std::size_t repeats_;
  SharedBarrier barrier_;
  SharedArray<RawRun> runs_;
};

}  // namespace convoy::testing

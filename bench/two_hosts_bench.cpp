// All-reduce of 16 MiB between two hosts with two ranks each, joined by a link of 1 Gbit/s: network namespaces, so it
// needs root. The hierarchy is held against a ring that is laid out badly on the hosts and one that is laid out well, its
// bytes against the closed form, and its time against what the schedule costs by the messages measured in the same run.
// The exit status says whether every bar was reached: 0 yes, 1 no; 0 with a reason where there are no namespaces.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "convoy/base/text.h"
#include "convoy/comm/engine/reduce.h"
#include "convoy/law/price.h"
#include "convoy/plan/link_fit.h"
#include "tests/support/two_hosts.h"

namespace convoy {
namespace {

using testing::HostRun;
using testing::kHostOfRank;
using testing::kHostRanks;
using testing::Measured;
using testing::SharedArray;
using testing::SharedBarrier;
using testing::TwoHostBench;
using testing::TwoNamespaces;

constexpr std::int64_t kElementBytes = sizeof(float);
constexpr std::int64_t kElements = (std::int64_t{16} << 20) / kElementBytes;
constexpr std::int64_t kSegment = (std::int64_t{1} << 20) / kElementBytes;
constexpr std::size_t kRepeats = 9;

// Messages by which a link is measured, and how many follow each other: small ones need several, since a limited link
// lends its first bytes at a higher rate.
struct Message {
  std::int64_t bytes = 0;
  int times = 1;
};
constexpr Message kMessages[] = {{256 << 10, 32}, {1 << 20, 8}, {4 << 20, 2}, {8 << 20, 1}};

// An all-reduce that is measured.
struct Contender {
  std::string label;
  std::string algorithm;
  spec::CollectiveOptions options;
};

std::vector<Contender> contenders() {
  return {
      {"hierarchy, segments of 1 MiB", "hierarchical:direct+ring", {kSegment, {}}},
      {"ordered, segments of 1 MiB", "ordered_hierarchical", {kSegment, {}}},
      {"hierarchy in one piece", "hierarchical:direct+ring", {}},
      {"ring, laid out well", "ring", {0, spec::host_major_order(kHostRanks, kHostOfRank)}},
      {"ring, laid out badly", "ring", {0, spec::round_robin_order(kHostRanks, kHostOfRank)}},
  };
}

// Seconds a byte of a sum, while all ranks do the same.
double sum_seconds(const SharedBarrier& barrier) {
  constexpr std::size_t kCount = std::size_t{1} << 20;
  const std::vector<float> a(kCount, 1.0F);
  const std::vector<float> b(kCount, 2.0F);
  std::vector<float> target(kCount, 3.0F);
  const std::byte* const sources[] = {reinterpret_cast<const std::byte*>(a.data()),
                                      reinterpret_cast<const std::byte*>(b.data())};
  const int program[] = {0, 1, spec::kAdd};
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 11; ++repeat) {
    barrier.meet();
    const TimePoint begin = system_clock().now();
    comm::combine(DType::kFloat32, ReduceOp::kSum, program, sources, reinterpret_cast<std::byte*>(target.data()),
                  static_cast<std::int64_t>(kCount), 1);
    seconds.push_back(to_seconds(system_clock().now() - begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + 5, seconds.end());
  return seconds[5] / static_cast<double>(kCount * sizeof(float));
}

// The fit of a link whose messages are the operations from `first` on.
plan::LinkFit fit_of(const TwoHostBench& bench, std::size_t first, const char* name) {
  std::vector<plan::MessageTime> times;
  for (std::size_t i = 0; i < std::size(kMessages); ++i) {
    times.push_back({kMessages[i].bytes, testing::median_seconds(bench.runs(first + i)) / kMessages[i].times});
  }
  const plan::LinkFit fit = plan::fit_link(times);
  fmt::print("messages {}: alpha {:.0f} us, {:.3f} GB/s each way, told within {:.1f}%\n", name, fit.cost.alpha_s * 1e6,
             1e-9 / fit.cost.beta_s, 100 * fit.worst_error);
  return fit;
}

class Bars {
 public:
  void hold(bool reached, const std::string& what) {
    fmt::print("{}: {}\n", reached ? "reached" : "MISSED ", what);
    all_ = all_ && reached;
  }
  bool all() const { return all_; }

 private:
  bool all_ = true;
};

// What the interface carried for each payload byte: the least and the most of all runs and hosts.
std::pair<double, double> interface_shares(const std::vector<HostRun>& runs) {
  std::pair<double, double> shares{INFINITY, 0};
  for (const HostRun& run : runs) {
    for (std::size_t host = 0; host < testing::kHosts; ++host) {
      const double share = static_cast<double>(run.interface[host]) / static_cast<double>(run.payload[host]);
      shares = {std::min(shares.first, share), std::max(shares.second, share)};
    }
  }
  return shares;
}

bool bytes_are_exact(const Contender& contender, const law::Price& price, const std::vector<HostRun>& runs) {
  const auto shape = testing::two_host_shape(kElements, contender.options);
  const std::vector<std::int64_t> sent = spec::find_algorithm("all_reduce", contender.algorithm).sent(shape);
  return std::all_of(runs.begin(), runs.end(), [&](const HostRun& run) {
    bool exact = true;
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
      exact = exact && run.sent[rank] == sent[rank] * kElementBytes;
    }
    for (std::size_t host = 0; host < testing::kHosts; ++host) {
      exact = exact && run.payload[host] == price.hosts[host].sent_bytes;
    }
    return exact;
  });
}

std::vector<Measured> link_operations() {
  std::vector<Measured> operations;
  for (const auto& pairs : std::vector<std::vector<std::pair<int, int>>>{{{0, 1}, {2, 3}}, {{0, 2}}}) {
    for (const Message& message : kMessages) {
      operations.push_back(testing::exchanges(pairs, message.bytes / kElementBytes, message.times));
    }
  }
  return operations;
}

// What became of a contender.
struct Outcome {
  double seconds = 0;
  double off = 0;
  bool exact = false;
  std::pair<double, double> shares;
};

Outcome outcome_of(const Contender& contender, const spec::Schedule& schedule, const std::vector<HostRun>& runs,
                   const law::Machine& machine, TextTable& table) {
  const law::Price price = law::price(schedule, kElementBytes, machine);
  Outcome outcome;
  outcome.seconds = testing::median_seconds(runs);
  outcome.off = price.seconds / outcome.seconds - 1;
  outcome.exact = bytes_are_exact(contender, price, runs);
  outcome.shares = interface_shares(runs);
  table.add({contender.label, fmt::format("{:.1f}", outcome.seconds * 1e3), fmt::format("{:.1f}", price.seconds * 1e3),
             fmt::format("{:+.1f}%", 100 * outcome.off),
             fmt::format("{:.2f}", 1e-6 * static_cast<double>(price.hosts[0].sent_bytes)),
             fmt::format("{:.4f} to {:.4f}", outcome.shares.first, outcome.shares.second)});
  return outcome;
}

// Whether every bar was reached; outcomes are in the order of contenders().
bool judge(const std::vector<Outcome>& outcomes) {
  const Outcome& hierarchy = outcomes[0];
  const double well = outcomes[3].seconds / hierarchy.seconds;
  const double badly = outcomes[4].seconds / hierarchy.seconds;
  Bars bars;
  bars.hold(std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& one) { return one.exact; }),
            "bytes at the transport equal the closed forms, of every rank and host in every run");
  bars.hold(hierarchy.shares.first >= 1.00 && hierarchy.shares.second <= 1.08,
            "the hierarchy's interface counters lie between 1.00 and 1.08 of its payload");
  bars.hold(badly >= 2.4, fmt::format("{:.2f} times faster than a badly laid ring (2.4)", badly));
  bars.hold(well >= 1.3, fmt::format("{:.2f} times faster than a well laid ring (1.3)", well));
  bars.hold(std::abs(hierarchy.off) <= 0.15,
            fmt::format("told within {:.1f}% of what was measured (15%)", 100 * std::abs(hierarchy.off)));
  return bars.all();
}

int run() {
  TwoNamespaces hosts;
  hosts.limit(0, "1gbit");
  if (!hosts.problem().empty()) {
    fmt::print("not measured: {}\n", hosts.problem());
    return 0;
  }
  std::vector<Measured> operations = link_operations();
  const std::size_t first = operations.size();
  for (const Contender& contender : contenders()) {
    const auto shape = testing::two_host_shape(kElements, contender.options);
    auto schedule = std::make_shared<spec::Schedule>(spec::build("all_reduce", contender.algorithm, shape));
    operations.push_back({contender.label, std::move(schedule), true});
  }
  SharedArray<double> gamma(1);
  const TwoHostBench bench(operations, kRepeats);
  bench.run([&](int rank, const SharedBarrier& barrier) {
    const double seconds = sum_seconds(barrier);
    if (rank == 0) gamma[0] = seconds;
  });

  law::Machine machine;
  machine.host_of_rank = kHostOfRank;
  machine.inside = fit_of(bench, 0, "inside a host").cost;
  machine.between = fit_of(bench, std::size(kMessages), "between hosts").cost;
  machine.gamma_s = gamma[0];
  TextTable table({"all-reduce of 16 MiB", "median ms", "told ms", "off by", "MB a host", "interface / payload"});
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < contenders().size(); ++i) {
    outcomes.push_back(
        outcome_of(contenders()[i], *operations[first + i].schedule, bench.runs(first + i), machine, table));
  }
  fmt::print("{}\n", table.str());
  return judge(outcomes) ? 0 : 1;
}

}  // namespace
}  // namespace convoy

int main() {
  try {
    return convoy::run();
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

// What an all-reduce sends over the link between two hosts, counted three times: by the algorithm's closed form, at the
// transport, and at the network interface. How much faster one is than the other, in figures, measures bench_two_hosts.
#include "tests/support/two_hosts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "convoy/law/price.h"

namespace convoy {
namespace {

using testing::HostRun;
using testing::kHostOfRank;
using testing::kHostRanks;

constexpr std::int64_t kElementBytes = sizeof(float);
constexpr std::int64_t kElements = (std::int64_t{16} << 20) / kElementBytes;

struct Contender {
  std::string algorithm;
  spec::CollectiveOptions options;
  // What each host sends to the other, in elements.
  std::int64_t host_elements = 0;
};

// From the fastest to the slowest.
std::vector<Contender> contenders() {
  return {
      {"hierarchical:direct+ring", {kElements / 16, {}}, kElements},
      {"ring", {0, spec::host_major_order(kHostRanks, kHostOfRank)}, kElements / 2 * 3},
      {"ring", {0, spec::round_robin_order(kHostRanks, kHostOfRank)}, kElements * 3},
  };
}

void expect_bytes(const Contender& contender, const spec::Schedule& schedule, const HostRun& run) {
  const auto shape = testing::two_host_shape(kElements, contender.options);
  const auto sent = spec::find_algorithm("all_reduce", contender.algorithm).sent(shape);
  for (std::size_t rank = 0; rank < kHostRanks; ++rank) EXPECT_EQ(run.sent[rank], sent[rank] * kElementBytes);
  law::Machine machine;
  machine.host_of_rank = kHostOfRank;
  const law::Price price = law::price(schedule, kElementBytes, machine);
  for (std::size_t host = 0; host < testing::kHosts; ++host) {
    const std::int64_t bytes = contender.host_elements * kElementBytes;
    EXPECT_EQ(price.hosts[host].sent_bytes, bytes) << "host " << host;
    EXPECT_EQ(run.payload[host], bytes) << "host " << host;
    EXPECT_GE(run.interface[host], bytes) << "host " << host;
    EXPECT_LE(static_cast<double>(run.interface[host]), 1.08 * static_cast<double>(bytes)) << "host " << host;
  }
}

TEST(TwoHosts, AHierarchySendsWhatItsFormulaSaysAndIsFasterThanRings) {
  testing::TwoNamespaces hosts;
  hosts.limit(0, "1gbit");
  if (!hosts.problem().empty()) GTEST_SKIP() << hosts.problem();
  std::vector<testing::Measured> operations;
  for (const Contender& contender : contenders()) {
    const auto shape = testing::two_host_shape(kElements, contender.options);
    auto schedule = std::make_shared<spec::Schedule>(spec::build("all_reduce", contender.algorithm, shape));
    operations.push_back({contender.algorithm, std::move(schedule), true});
  }
  const testing::TwoHostBench bench(operations, 3);
  bench.run();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<HostRun> runs = bench.runs(i);
    for (const HostRun& run : runs) expect_bytes(contenders()[i], *operations[i].schedule, run);
    seconds.push_back(testing::median_seconds(runs));
  }
  EXPECT_LT(seconds[0], seconds[1]) << "a well laid ring";
  EXPECT_LT(seconds[1], seconds[2]) << "a badly laid ring";
}

}  // namespace
}  // namespace convoy

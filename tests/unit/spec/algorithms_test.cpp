// Every algorithm of the registry: its schedules are valid for any number of ranks and any size, and send what their
// Cost lines say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/collectives/hierarchical.h"
#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/phases/all_reduce_phases.h"
#include "convoy/spec/schedule/describe.h"
#include "convoy/spec/schedule/validate.h"
#include "convoy/spec/topology.h"

namespace convoy::spec {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 3, 1023, 65537};
constexpr int kMostRanks = 17;

// Whether the output may lie in the memory of an input: no input elements are read after the same elements of the output
// were written.
void expect_in_place(const Schedule& schedule) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<Chunk> written;
    const auto expect_fresh = [&](const Chunk& chunk) {
      if (chunk.kind != BufferKind::kInput) return;
      for (const Chunk& other : written) {
        EXPECT_FALSE(chunk.offset < other.offset + other.count && other.offset < chunk.offset + chunk.count)
            << "rank " << rank << ": " << to_string(chunk) << " is read after " << to_string(other) << " was written";
      }
    };
    for (const Round& round : schedule.ranks[rank]) {
      for (const Operation& operation : round) {
        if (operation.kind == OpKind::kSend) expect_fresh(operation.target);
        for (const Chunk& source : operation.sources) expect_fresh(source);
        if (operation.kind != OpKind::kSend && operation.target.kind == BufferKind::kOutput) {
          written.push_back(operation.target);
        }
      }
    }
  }
}

void check(const Algorithm& algorithm, const CollectiveShape& asked) {
  const CollectiveShape shape = with_defaults(asked);
  SCOPED_TRACE(
      testing::Message() << algorithm.collective << " " << algorithm.name << ", " << shape.ranks << " ranks, "
                         << shape.elements << " elements, chunks of " << shape.options.chunk_elements << ", root "
                         << shape.root << ", order " << testing::PrintToString(shape.options.order) << ", hosts "
                         << testing::PrintToString(shape.hosts) << ", parts " << testing::PrintToString(shape.parts));
  const Schedule schedule = build(algorithm.collective, algorithm.name, shape);
  EXPECT_EQ(schedule.collective, algorithm.collective);
  EXPECT_EQ(schedule.algorithm, algorithm.name);
  try {
    const ScheduleFacts facts = validate(schedule);
    EXPECT_EQ(facts.sent_elements, algorithm.sent(shape));
    EXPECT_LE(facts.rounds, algorithm.rounds(shape));
  } catch (const Error& error) {
    ADD_FAILURE() << error.message() << "\n" << (schedule.ranks.size() < 6 ? describe(schedule) : "");
  }
}

// A layout that shares 2 more replicas than there are ranks unevenly.
OrderedLayout uneven_layout(int ranks) { return {ranks + 2, deal_replicas(ranks + 2, ranks)}; }

TEST(Algorithms, AreValidAndSendWhatTheirCostLinesSayForAnyWorld) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (const std::int64_t elements : kSizes) {
        CollectiveShape shape;
        shape.ranks = ranks;
        shape.elements = algorithm.name == "bruck" ? elements * ranks : elements;
        shape.root = ranks / 2;
        shape.options.chunk_elements = 1 + elements / 5;
        if (algorithm.ordered) shape.layout = uneven_layout(ranks);
        // Hosts of 3 ranks, the last one perhaps smaller.
        for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
        check(algorithm, shape);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Algorithms, AllReduceAndBroadcastMayWorkInPlace) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != "all_reduce" && algorithm.collective != "broadcast") continue;
    for (int ranks = 1; ranks <= 9; ++ranks) {
      SCOPED_TRACE(testing::Message() << algorithm.name << " on " << ranks);
      CollectiveShape shape;
      shape.ranks = ranks;
      shape.elements = 65537;
      shape.options.chunk_elements = 10000;
      for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
      expect_in_place(build(algorithm.collective, algorithm.name, shape));
    }
  }
}

// A peer's memory may be read where it lies until the reduction is done; so it must never be held from round to round.
TEST(Algorithms, ReadWhatTheyReceiveInTheSameRound) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : {2, 3, 7, 8}) {
      CollectiveShape shape;
      shape.ranks = ranks;
      shape.elements = 20000;
      shape.options.chunk_elements = 3000;
      for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
      if (!fits(algorithm, shape)) continue;
      for (const RankRounds& rounds : build(algorithm.collective, algorithm.name, shape).ranks) {
        for (const Round& round : rounds) {
          int received = 0;
          for (const Operation& operation : round) {
            if (operation.kind == OpKind::kReceive && operation.target.kind == BufferKind::kScratch) ++received;
            for (const Chunk& source : operation.sources) received -= source.kind == BufferKind::kScratch ? 1 : 0;
          }
          EXPECT_EQ(received, 0) << algorithm.collective << " " << algorithm.name << " on " << ranks;
        }
      }
    }
  }
}

TEST(Algorithms, TakeTheRoundsOfTheirCostLines) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      SCOPED_TRACE(testing::Message() << algorithm.collective << " " << algorithm.name << " on " << ranks);
      CollectiveShape shape;
      shape.ranks = ranks;
      shape.elements = std::int64_t{ranks} * ranks * 65536;
      shape.options.chunk_elements = shape.elements / 4;
      for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
      const ScheduleFacts facts = validate(build(algorithm.collective, algorithm.name, shape));
      const int wanted = algorithm.rounds(with_defaults(shape));
      // Ranks without a shard, ranks alone on a host and a host alone save messages, so that there may be fewer rounds.
      if (algorithm.name.find("hierarchical") == std::string_view::npos || (ranks % 3 == 0 && ranks > 3)) {
        EXPECT_EQ(facts.rounds, wanted);
      } else {
        EXPECT_LE(facts.rounds, wanted);
      }
    }
  }
}

TEST(Algorithms, CountBeyond32Bits) {
  const std::int64_t many = (std::int64_t{1} << 31) * 7 + 5;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int ranks : {2, 5, 8}) {
      CollectiveShape shape;
      shape.ranks = ranks;
      shape.elements = algorithm.name == "bruck" ? many * ranks : many;
      shape.options.chunk_elements = many / 3;
      for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
      check(algorithm, shape);
    }
  }
}

TEST(Algorithms, HierarchicalWorksForAnyHosts) {
  const std::vector<HostOfRank> worlds = {
      {0, 0, 0, 0}, {0, 1, 2, 3},       {0, 1, 0, 1},          {7, 7, 3, 3, 3},          {0, 0, 1},
      {0},          {0, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 2}, {4, 4, 4, 4, 9, 9, 9, 9},
  };
  for (const HostOfRank& hosts : worlds) {
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.name.find("hierarchical") == std::string_view::npos) continue;
      CollectiveShape shape;
      shape.ranks = static_cast<int>(hosts.size());
      shape.hosts = hosts;
      for (const std::int64_t elements : kSizes) {
        shape.elements = elements;
        if (fits(algorithm, shape)) check(algorithm, shape);
      }
    }
  }
}

// What each host sends to others, by the order of ranks_by_host.
std::vector<std::int64_t> sent_by_hosts(const ScheduleFacts& facts, const HostOfRank& hosts) {
  std::vector<std::int64_t> sent(hosts.size(), 0);
  for (const ScheduleFacts::Link& link : facts.links) {
    const int from = hosts[static_cast<std::size_t>(link.from)];
    if (from != hosts[static_cast<std::size_t>(link.to)]) sent[static_cast<std::size_t>(from)] += link.elements;
  }
  return sent;
}

TEST(Hierarchical, CrossesBetweenHostsAsRarelyAsARingOfHosts) {
  CollectiveShape shape;
  shape.ranks = 4;
  shape.elements = 16 * 4096;
  shape.hosts = {0, 1, 0, 1};
  const std::int64_t n = shape.elements;
  for (const auto name : {"hierarchical:direct+ring", "hierarchical:ring+halving_doubling"}) {
    const auto sent = sent_by_hosts(validate(build("all_reduce", name, shape)), shape.hosts);
    EXPECT_EQ(sent[0], n);  // 2n(H-1)/H
    EXPECT_EQ(sent[1], n);
  }
  // A ring in rank order crosses at each step; one that follows the hosts crosses once a host.
  const auto badly = sent_by_hosts(validate(build("all_reduce", "ring", shape)), shape.hosts);
  EXPECT_EQ(badly[0], 2 * (n * 3 / 2));
  shape.options.order = host_major_order(4, shape.hosts);
  EXPECT_THAT(shape.options.order, testing::ElementsAre(0, 2, 1, 3));
  const auto well = sent_by_hosts(validate(build("all_reduce", "ring", shape)), shape.hosts);
  EXPECT_EQ(well[0], n * 3 / 2);
  shape.hosts = {0, 0, 1, 1};
  EXPECT_THAT(round_robin_order(4, shape.hosts), testing::ElementsAre(0, 2, 1, 3));
}

TEST(Topology, NumbersHostsInTheOrderOfTheirFirstRanks) {
  EXPECT_EQ(number_hosts({"b", "a", "b", "", "a"}), (HostOfRank{0, 1, 0, 2, 1}));
  EXPECT_EQ(number_hosts({}), HostOfRank{});
}

TEST(Topology, TakesTheHostsOfARecipeForItsRanksOnly) {
  EXPECT_EQ(hosts_of_recipe({"x", "x", "y"}, 3), (HostOfRank{0, 0, 1}));
  EXPECT_EQ(hosts_of_recipe({}, 3), HostOfRank{});
  EXPECT_EQ(hosts_of_recipe({"x", "y"}, 1), HostOfRank{}) << "one rank needs no hosts";
  try {
    hosts_of_recipe({"x", "y"}, 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message(), "comm.hosts names a host for each of 2 ranks, and there are 3 ranks");
  }
}

TEST(Hierarchical, OrderedSumsAreThoseOfTheCanonicalTreeOnAnyHosts) {
  // 8 replicas on 4 ranks of 2 hosts, and on one rank: one sum over replicas, whoever carries them.
  const OrderedLayout layout{8, deal_replicas(8, 4)};
  const ScheduleFacts flat = validate(build("all_reduce", "ordered_exchange", {4, 100, 0, {}, {}, layout, {}, {}}));
  const ScheduleFacts hosts =
      validate(build("all_reduce", "ordered_hierarchical", {4, 100, 0, {}, {}, layout, {0, 0, 1, 1}, {}}));
  EXPECT_EQ(flat.values, hosts.values);
  EXPECT_THAT(hosts.values, testing::ElementsAre("((0.0 + 1.0) + (2.0 + 3.0))"));
  CollectiveShape crossed{4, 100, 0, {}, {}, layout, {0, 1, 0, 1}, {}};
  try {
    (void)build("all_reduce", "ordered_hierarchical", crossed);
    FAIL() << "replicas of one host that are not neighbours have no sum of their own";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("needs the replicas of each host to follow each other"));
  }
  EXPECT_THROW(ordered_hierarchical_all_reduce(layout, {0, 1, 0, 1}, 100), Error);
}

TEST(Hierarchical, OrderedAlgorithmsAgreeOnEverySum) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    CollectiveShape shape;
    shape.ranks = ranks;
    shape.elements = 3 * 4096 * ranks;
    shape.layout = uneven_layout(ranks);
    for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank < 2 ? 0 : 1 + (rank - 2) / 4);
    const std::vector<std::string> wanted = validate(build("all_reduce", "ordered_exchange", shape)).values;
    ASSERT_EQ(wanted.size(), 1u);
    for (const auto name : {"ordered_direct", "ordered_hierarchical"}) {
      EXPECT_EQ(validate(build("all_reduce", name, shape)).values, wanted) << name << " on " << ranks;
    }
    EXPECT_EQ(validate(build("reduce_scatter", "ordered_exchange", shape)).values, wanted);
    EXPECT_EQ(validate(build("reduce", "ordered_exchange", shape)).values, wanted);
  }
}

TEST(Algorithms, RecursiveDoublingGivesEveryRankTheSameSum) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    CollectiveShape shape;
    shape.ranks = ranks;
    shape.elements = 10;
    for (const auto name : {"recursive_doubling", "direct"}) {
      EXPECT_EQ(validate(build("all_reduce", name, shape)).values.size(), 1u) << name << " on " << ranks;
    }
  }
}

TEST(Algorithms, TreesAddInTheOrderOfPositions) {
  CollectiveShape shape;
  shape.ranks = 4;
  shape.elements = 2;
  EXPECT_THAT(validate(build("all_reduce", "recursive_doubling", shape)).values,
              testing::ElementsAre("((0.0 + 1.0) + (2.0 + 3.0))"));
  EXPECT_THAT(validate(build("reduce", "binomial", shape)).values, testing::ElementsAre("((0.0 + 1.0) + (2.0 + 3.0))"));
  EXPECT_THAT(validate(build("all_reduce", "double_binary_tree", shape)).values,
              testing::ElementsAre("(0.0 + ((1.0 + 2.0) + 3.0))", "(((0.0 + 1.0) + 2.0) + 3.0)"));
}

TEST(Algorithms, EachHasTheOrderOfSumsThatItsPageSays) {
  CollectiveShape shape;
  shape.ranks = 4;
  shape.elements = 4 * 4096;
  const auto values = [&](std::string_view collective, std::string_view name) {
    return validate(build(collective, name, shape)).values;
  };
  // By distance, the lower rank on the left: one order for all parts.
  const auto by_distance = testing::ElementsAre("((0.0 + 2.0) + (1.0 + 3.0))");
  EXPECT_THAT(values("all_reduce", "halving_doubling"), by_distance);
  EXPECT_THAT(values("reduce_scatter", "halving"), by_distance);
  EXPECT_THAT(values("reduce", "halving_gather"), by_distance);
  EXPECT_THAT(values("all_reduce", "direct"), testing::ElementsAre("((0.0 + 1.0) + (2.0 + 3.0))"));
  // Round the ring from the rank after the owner on; in the all-reduce part p starts at rank p.
  EXPECT_THAT(values("reduce_scatter", "ring"),
              testing::ElementsAre("(((1.0 + 2.0) + 3.0) + 0.0)", "(((2.0 + 3.0) + 0.0) + 1.0)",
                                   "(((3.0 + 0.0) + 1.0) + 2.0)", "(((0.0 + 1.0) + 2.0) + 3.0)"));
  EXPECT_EQ(values("all_reduce", "ring")[0], "(((0.0 + 1.0) + 2.0) + 3.0)");
  // The own value, then from the left onwards.
  EXPECT_EQ(values("reduce_scatter", "pairwise")[0], "(((0.0 + 3.0) + 2.0) + 1.0)");
  shape.hosts = {0, 1, 0, 1};
  EXPECT_THAT(values("all_reduce", "hierarchical:direct+direct"), testing::ElementsAre("((0.0 + 2.0) + (1.0 + 3.0))"));
}

TEST(DoubleBinaryTree, ARankInsideOneTreeIsALeafOfTheOther) {
  for (int ranks = 2; ranks <= 64; ++ranks) {
    std::vector<int> trees_inside(static_cast<std::size_t>(ranks), 0);
    for (const bool second : {false, true}) {
      const std::vector<int> parents = binary_tree_parents(ranks, second);
      for (int rank = 0; rank < ranks; ++rank) {
        const bool inside = std::find(parents.begin(), parents.end(), rank) != parents.end();
        trees_inside[static_cast<std::size_t>(rank)] += inside ? 1 : 0;
        EXPECT_LE(std::count(parents.begin(), parents.end(), rank), 2);
      }
      EXPECT_EQ(std::count(parents.begin(), parents.end(), -1), 1);
    }
    EXPECT_LE(std::count(trees_inside.begin(), trees_inside.end(), 2), ranks % 2) << ranks;
    CollectiveShape shape;
    shape.ranks = ranks;
    shape.elements = 2;
    for (const std::int64_t sent : validate(build("all_reduce", "double_binary_tree", shape)).sent_elements) {
      EXPECT_LE(sent, 4) << ranks;
    }
  }
}

TEST(Registry, NamesTheNearestAlgorithm) {
  const auto message = [](std::string_view collective, std::string_view algorithm) -> std::string {
    try {
      (void)find_algorithm(collective, algorithm);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return "found";
  };
  EXPECT_EQ(message("all_reduce", "ring"), "found");
  EXPECT_EQ(message("all_reduce", "rings"), "no algorithm 'rings' for all_reduce (did you mean 'ring'?)");
  EXPECT_EQ(message("allreduce", "ring"), "no collective 'allreduce' (did you mean 'all_reduce'?)");
  EXPECT_EQ(message("broadcast", "zzzzzzzzzzzz"), "no algorithm 'zzzzzzzzzzzz' for broadcast");
  EXPECT_THAT(collectives(), testing::ElementsAre("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                                  "gather", "scatter", "all_to_all", "barrier"));
}

TEST(Registry, SaysWhatAnAlgorithmNeeds) {
  CollectiveShape shape;
  shape.ranks = 3;
  shape.elements = 10;  // does not divide
  EXPECT_FALSE(fits(find_algorithm("all_to_all", "bruck"), shape));
  EXPECT_TRUE(fits(find_algorithm("all_to_all", "pairwise"), shape));
  EXPECT_THROW((void)build("all_to_all", "bruck", shape), Error);
  shape.options.order = {0, 1, 1};
  EXPECT_THROW((void)build("all_reduce", "ring", shape), Error);
  shape.options.order = {};
  shape.hosts = {0, 1};
  EXPECT_THROW((void)build("all_reduce", "hierarchical:direct+ring", shape), Error);
  shape.hosts = {};
  shape.root = 3;
  EXPECT_THROW((void)build("broadcast", "chain", shape), Error);
}

// Draws whole numbers from [begin, end).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t begin, std::int64_t end) {
    return begin + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end - begin));
  }
  int small(int begin, int end) { return static_cast<int>((*this)(begin, end)); }

 private:
  std::mt19937_64 engine_;
};

// A random shape for an algorithm: uneven parts and blocks, any hosts, any order.
CollectiveShape random_shape(const Algorithm& algorithm, Draw& draw) {
  constexpr std::int64_t sizes[] = {0, 1, 2, 5, 17, 1000, 4097, 30011, 100000};
  CollectiveShape shape;
  shape.ranks = draw.small(1, kMostRanks + 1);
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  shape.elements = sizes[draw(0, 9)];
  shape.root = draw.small(0, shape.ranks);
  if (draw(0, 2) == 0) shape.options.chunk_elements = 1 + shape.elements / draw(1, 9);
  if (draw(0, 2) == 0) {
    std::vector<int>& order = shape.options.order;
    order.resize(ranks);
    std::iota(order.begin(), order.end(), 0);
    for (int i = shape.ranks; i > 1; --i) {
      std::swap(order[static_cast<std::size_t>(i) - 1], order[static_cast<std::size_t>(draw(0, i))]);
    }
  }
  const int hosts = draw.small(1, 5);
  const bool blocked = algorithm.name == "ordered_hierarchical" || draw(0, 2) == 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    shape.hosts.push_back(blocked ? rank * hosts / shape.ranks : draw.small(0, hosts));
  }
  const int leaves = shape.ranks + draw.small(0, 9);
  shape.layout = {leaves, deal_replicas(leaves, shape.ranks)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    shape.parts.push_back(draw(0, 3) == 0 ? 0 : draw(0, 1 + shape.elements));
  }
  shape.counts.assign(ranks, std::vector<std::int64_t>(ranks, shape.elements));
  if (algorithm.name != "bruck" && algorithm.collective == "all_to_all") {
    for (std::vector<std::int64_t>& row : shape.counts) {
      for (std::int64_t& count : row) count = draw(0, 2) * draw(1, 50);
    }
  }
  return shape;
}

TEST(Algorithms, TenThousandRandomSchedulesAreValid) {
  Draw draw(20090);
  const auto all = algorithms();
  for (int i = 0; i < 10000 && !HasFailure(); ++i) {
    const Algorithm& algorithm = all[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(all.size())))];
    check(algorithm, random_shape(algorithm, draw));
  }
}

RC_GTEST_PROP(Algorithms, AreValidForAnyRandomShape, (std::uint64_t seed)) {
  Draw draw(seed);
  const auto all = algorithms();
  const Algorithm& algorithm = all[static_cast<std::size_t>(draw(0, static_cast<std::int64_t>(all.size())))];
  check(algorithm, random_shape(algorithm, draw));
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(Algorithms, SomeHundredRanksAreValidatedInReasonableTime) {
  for (const auto& [collective, name] : {std::pair{"all_reduce", "ring"}, std::pair{"all_reduce", "ordered_exchange"},
                                         std::pair{"all_reduce", "double_binary_tree"},
                                         std::pair{"all_to_all", "bruck"}, std::pair{"reduce_scatter", "halving"}}) {
    CollectiveShape shape;
    shape.ranks = 256;
    shape.elements = 256 * 4096;
    shape.options.chunk_elements = 4096;
    const ScheduleFacts facts = validate(build(collective, name, shape));
    EXPECT_EQ(facts.sent_elements, find_algorithm(collective, name).sent(with_defaults(shape))) << name;
  }
}

}  // namespace
}  // namespace convoy::spec

// Every builder, for many sizes: the schedule is complete, means what it says, and costs what its Cost line says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>

#include "convoy/base/error.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/rooted.h"
#include "convoy/spec/schedule/describe.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::spec {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 3, 1023, 4096, 4097, 65537};
constexpr int kMostRanks = 9;

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// The canonical sum of leaves [begin, end) of a tree as text, each leaf by the name of its replica.
std::string tree_text(int leaves, ReplicaRange range) {
  std::vector<ReplicaRange> parts;
  for (int leaf = 0; leaf < range.size(); ++leaf) parts.push_back({leaf, leaf + 1});
  // A maximal subtree is itself a tree over its leaves, so its program is that of a tree of its size.
  std::vector<std::string> stack;
  for (const int step : tree_program(range.size(), parts)) {
    if (step != kAdd) {
      stack.push_back("replica" + std::to_string(range.begin + step));
      continue;
    }
    const std::string right = stack.back();
    stack.pop_back();
    stack.back() = "(" + stack.back() + " + " + right + ")";
  }
  EXPECT_LE(range.end, leaves);
  return stack.front();
}

// Replaces each "rank.input" of a value by the sum over replicas that the input stands for.
std::string by_replicas(const std::string& value, const OrderedLayout& layout) {
  std::string text;
  for (std::size_t i = 0; i < value.size();) {
    if (!std::isdigit(static_cast<unsigned char>(value[i]))) {
      text += value[i++];
      continue;
    }
    std::size_t used = 0;
    const int rank = std::stoi(value.substr(i), &used);
    i += used + 1;
    const int input = std::stoi(value.substr(i), &used);
    i += used;
    const auto parts = maximal_subtrees(layout.leaves, layout.owners[static_cast<std::size_t>(rank)]);
    text += tree_text(layout.leaves, parts[static_cast<std::size_t>(input)]);
  }
  return text;
}

void expect_canonical(const OrderedLayout& layout, const ScheduleFacts& facts) {
  const std::string wanted = tree_text(layout.leaves, {0, layout.leaves});
  for (const auto& stretch : facts.outputs) ASSERT_EQ(by_replicas(facts.value(stretch), layout), wanted);
}

// The Cost line of the ordered exchanges.
std::int64_t ordered_cost(const OrderedLayout& layout, std::int64_t elements, int rank, bool spread) {
  const int ranks = static_cast<int>(layout.owners.size());
  const std::int64_t own = shard_range(elements, ranks, rank).size();
  const auto partials = maximal_subtrees(layout.leaves, layout.owners[static_cast<std::size_t>(rank)]).size();
  return static_cast<std::int64_t>(partials) * (elements - own) + (spread ? (ranks - 1) * own : 0);
}

void check_ordered(const OrderedLayout& layout, std::int64_t elements) {
  const int ranks = static_cast<int>(layout.owners.size());
  SCOPED_TRACE(testing::Message() << layout.leaves << " leaves, " << ranks << " ranks, " << elements << " elements");
  for (const bool spread : {true, false}) {
    const Schedule schedule = spread ? ordered_all_reduce(layout, elements) : ordered_reduce_scatter(layout, elements);
    const ScheduleFacts facts = validate(schedule);
    EXPECT_EQ(schedule.contributions, layout.leaves);
    expect_canonical(layout, facts);
    EXPECT_LE(facts.rounds, spread && ranks > 1 ? 2 : 1);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_EQ(facts.sent_elements[r], ordered_cost(layout, elements, rank, spread));
      EXPECT_EQ(schedule.output_elements[r], spread ? elements : shard_range(elements, ranks, rank).size());
    }
  }
}

// Whether no operation after a write to output elements still reads the same elements of an input: then the output may
// lie in the memory of an input. Elements of output and input are compared by `shift`.
void expect_output_may_lie_over_input(const Schedule& schedule) {
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

TEST(OrderedExchange, IsCompleteAndCanonicalForEveryDealOfReplicas) {
  for (int leaves = 1; leaves <= kMostRanks; ++leaves) {
    for (int ranks = 1; ranks <= leaves; ++ranks) {
      for (const std::int64_t elements : kSizes) check_ordered({leaves, deal_replicas(leaves, ranks)}, elements);
    }
  }
}

TEST(OrderedExchange, TakesRanksWithoutLeaves) {
  const OrderedLayout layout{3, {{0, 0}, {0, 2}, {2, 2}, {2, 3}}};
  check_ordered(layout, 4096 * 5 + 1);
  const Schedule schedule = ordered_all_reduce(layout, 10);
  EXPECT_THAT(schedule.inputs, testing::ElementsAre(0, 1, 0, 1));
}

RC_GTEST_PROP(OrderedExchange, IsCanonicalForRandomLayouts, ()) {
  const int leaves = *rc::gen::inRange(1, 20);
  const int ranks = *rc::gen::inRange(1, 8);
  std::vector<int> borders =
      *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(ranks - 1), rc::gen::inRange(0, leaves + 1));
  std::sort(borders.begin(), borders.end());
  OrderedLayout layout{leaves, {}};
  int begin = 0;
  for (const int border : borders) {
    layout.owners.push_back({begin, border});
    begin = border;
  }
  layout.owners.push_back({begin, leaves});
  const std::int64_t elements = *rc::gen::inRange<std::int64_t>(0, 100000);
  check_ordered(layout, elements);
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(OrderedExchange, RefusesOwnersThatDoNotCoverTheLeaves) {
  EXPECT_THROW(ordered_all_reduce({4, {{0, 2}, {3, 4}}}, 8), Error);
  EXPECT_THROW(ordered_all_reduce({4, {{0, 2}}}, 8), Error);
  EXPECT_THROW(ordered_all_reduce({4, {{2, 4}, {0, 2}}}, 8), Error);
  EXPECT_THROW(ordered_all_reduce({1, {}}, 8), Error);
  EXPECT_THROW(ordered_all_reduce({1, {{0, 1}}}, -1), Error);
}

TEST(OrderedExchange, NoTwoRanksBeginWithTheSamePeer) {
  const Schedule schedule = ordered_all_reduce({5, deal_replicas(5, 5)}, 5 * 4096);
  std::set<int> first_peers;
  for (const RankRounds& rounds : schedule.ranks) first_peers.insert(rounds[0][0].peer);
  EXPECT_EQ(first_peers.size(), 5u);
}

TEST(OrderedExchange, OneRankOnlyReduces) {
  const Schedule schedule = ordered_all_reduce({5, {{0, 5}}}, 100);
  ASSERT_EQ(schedule.ranks[0].size(), 1u);
  ASSERT_EQ(schedule.ranks[0][0].size(), 1u);
  EXPECT_EQ(to_string(schedule.ranks[0][0][0]), "reduce output [0, 100) = input 0 [0, 100), final");
}

TEST(RingAllReduce, EveryPartStartsAtItsOwnRank) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const std::int64_t elements : kSizes) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << elements << " elements");
      const ScheduleFacts facts = validate(ring_all_reduce(ranks, elements));
      for (const auto& stretch : facts.outputs) {
        // Part p lies first with rank p; each rank to the right adds its own on the right.
        int part = 0;
        while (stretch.begin >= shard_range(elements, ranks, part, 1).end) ++part;
        std::string wanted = std::to_string(part) + ".0";
        for (int step = 1; step < ranks; ++step) {
          wanted = "(" + wanted + " + " + std::to_string((part + step) % ranks) + ".0)";
        }
        ASSERT_EQ(facts.value(stretch), wanted);
      }
    }
  }
}

TEST(RingAllReduce, SendsTwiceAllButTwoParts) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const std::int64_t elements : kSizes) {
      const ScheduleFacts facts = validate(ring_all_reduce(ranks, elements));
      if (ranks > 1 && elements >= ranks) {
        EXPECT_EQ(facts.rounds, 2 * (ranks - 1));
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const auto part = [&](int index) { return shard_range(elements, ranks, index % ranks, 1).size(); };
        const std::int64_t wanted = ranks == 1 ? 0 : 2 * elements - part(rank + 1) - part(rank + 2);
        EXPECT_EQ(facts.sent_elements[static_cast<std::size_t>(rank)], wanted);
        if (elements % ranks == 0) {
          EXPECT_EQ(wanted, 2 * (ranks - 1) * elements / ranks);
        }
      }
    }
  }
}

TEST(AllReduce, OutputMayLieOverAnInput) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    expect_output_may_lie_over_input(ordered_all_reduce({7, deal_replicas(7, ranks)}, 65537));
    expect_output_may_lie_over_input(ring_all_reduce(ranks, 65537));
    expect_output_may_lie_over_input(binomial_broadcast(ranks, ranks / 2, 65537));
  }
}

// Parts that differ by rank, with empty ones among them.
std::vector<std::int64_t> uneven_parts(int ranks, std::int64_t size) {
  std::vector<std::int64_t> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(rank % 3 == 1 ? 0 : size + rank);
  return parts;
}

TEST(AllGather, EveryRankHoldsAllPartsInOrder) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (const std::int64_t size : kSizes) {
      const std::vector<std::int64_t> parts = uneven_parts(ranks, size);
      for (const bool ring : {false, true}) {
        const Schedule schedule = ring ? ring_all_gather(parts) : direct_all_gather(parts);
        const ScheduleFacts facts = validate(schedule);
        EXPECT_EQ(schedule.elements, sum(parts));
        std::map<int, std::vector<std::string>> held;
        for (const auto& stretch : facts.outputs) held[stretch.rank].push_back(facts.value(stretch));
        std::vector<std::string> wanted;
        for (int rank = 0; rank < ranks; ++rank) {
          if (parts[static_cast<std::size_t>(rank)] > 0) wanted.push_back(std::to_string(rank) + ".0");
        }
        for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(held[rank], wanted);
      }
    }
  }
}

TEST(AllGather, SendsWhatTheCostLinesSay) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const std::vector<std::int64_t> parts = uneven_parts(ranks, 1023);
    const ScheduleFacts direct = validate(direct_all_gather(parts));
    const ScheduleFacts ring = validate(ring_all_gather(parts));
    EXPECT_EQ(direct.rounds, 1);
    EXPECT_LE(ring.rounds, std::max(1, ranks - 1));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_EQ(direct.sent_elements[r], (ranks - 1) * parts[r]);
      EXPECT_EQ(ring.sent_elements[r], sum(parts) - parts[static_cast<std::size_t>((rank + 1) % ranks)]);
    }
  }
}

TEST(Broadcast, EveryRankHoldsTheRootsValues) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      for (const std::int64_t elements : kSizes) {
        const Schedule schedule = binomial_broadcast(ranks, root, elements);
        const ScheduleFacts facts = validate(schedule);
        ASSERT_EQ(facts.outputs.size(), elements == 0 ? 0u : static_cast<std::size_t>(ranks));
        for (const auto& stretch : facts.outputs) EXPECT_EQ(facts.value(stretch), std::to_string(root) + ".0");
        EXPECT_EQ(sum(facts.sent_elements), (ranks - 1) * elements);
        EXPECT_EQ(schedule.root, root);
        for (int rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(schedule.inputs[static_cast<std::size_t>(rank)], rank == root ? 1 : 0);
        }
        int doublings = 0;
        while ((1 << doublings) < ranks) ++doublings;
        if (elements > 0) {
          EXPECT_EQ(facts.rounds, std::max(1, doublings));
        }
      }
    }
  }
  EXPECT_THROW(binomial_broadcast(3, 3, 1), Error);
  EXPECT_THROW(binomial_broadcast(3, -1, 1), Error);
}

// Which ranks' entry each rank has heard of after its last round, directly or through others.
std::vector<std::set<int>> heard_of(const Schedule& barrier) {
  const std::size_t ranks = barrier.ranks.size();
  std::vector<std::set<int>> heard(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) heard[rank].insert(static_cast<int>(rank));
  const std::size_t rounds = barrier.ranks[0].size();
  for (std::size_t round = 0; round < rounds; ++round) {
    const auto before = heard;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const Operation& operation : barrier.ranks[rank][round]) {
        if (operation.kind != OpKind::kReceive) continue;
        const auto& news = before[static_cast<std::size_t>(operation.peer)];
        heard[rank].insert(news.begin(), news.end());
      }
    }
  }
  return heard;
}

TEST(Barrier, NobodyLeavesBeforeEverybodyEntered) {
  for (int ranks = 1; ranks <= 2 * kMostRanks; ++ranks) {
    const Schedule schedule = dissemination_barrier(ranks);
    const ScheduleFacts facts = validate(schedule);
    for (const auto& heard : heard_of(schedule)) EXPECT_EQ(heard.size(), static_cast<std::size_t>(ranks));
    int doublings = 0;
    while ((1 << doublings) < ranks) ++doublings;
    EXPECT_EQ(facts.rounds, doublings);
    for (const std::int64_t messages : facts.sent_messages) EXPECT_EQ(messages, doublings);
    EXPECT_EQ(sum(facts.sent_elements), 0);
  }
}

TEST(DescribeSchedule, ShowsALineForEachOperation) {
  EXPECT_EQ(describe(binomial_broadcast(2, 1, 5)),
            "binomial broadcast of 5 elements on 2 ranks, 1 contributions\n"
            "rank 0, round 0\n"
            "  receive output [0, 5) from rank 1\n"
            "rank 1, round 0\n"
            "  send input 0 [0, 5) to rank 0\n"
            "  copy output [0, 5) = input 0 [0, 5), final\n");
  EXPECT_THAT(describe(ordered_all_reduce({2, deal_replicas(2, 2)}, 5)),
              testing::HasSubstr("reduce output [0, 5) = (input 0 [0, 5) + scratch 0), final"));
}

}  // namespace
}  // namespace convoy::spec

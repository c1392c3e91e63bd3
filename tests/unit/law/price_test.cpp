// Prices against values worked out by hand.
#include "convoy/law/price.h"

#include <gtest/gtest.h>

#include <cmath>

#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::law {
namespace {

constexpr double kAlpha = 2e-6;
constexpr double kBeta = 1e-9;
constexpr double kGamma = 0.25e-9;

Machine one_host() { return {{}, {kAlpha, kBeta}, {}, kGamma, 0}; }

spec::CollectiveShape shape(int ranks, std::int64_t elements, std::int64_t chunk = 0) {
  spec::CollectiveShape made;
  made.ranks = ranks;
  made.elements = elements;
  made.options.chunk_elements = chunk;
  return made;
}

double seconds(std::string_view collective, std::string_view algorithm, const spec::CollectiveShape& shape,
               const Machine& machine) {
  return price(spec::build(collective, algorithm, shape), 1, machine).seconds;
}

void expect_near(double found, double wanted) { EXPECT_NEAR(found, wanted, 1e-9 * wanted); }

TEST(Price, RingAllReduceIsTheTextbookFormula) {
  for (const int ranks : {2, 3, 4, 8}) {
    const double n = 840000;
    const double part = n / ranks;
    expect_near(seconds("all_reduce", "ring", shape(ranks, 840000), one_host()),
                2 * (ranks - 1) * (kAlpha + part * kBeta) + (ranks - 1) * part * kGamma);
  }
}

TEST(Price, RecursiveHalvingAndDoublingIsTheTextbookFormula) {
  for (const int ranks : {2, 4, 8}) {
    const double n = 840000;
    const double moved = n * (ranks - 1) / ranks;
    expect_near(seconds("all_reduce", "halving_doubling", shape(ranks, 840000), one_host()),
                2 * std::log2(ranks) * kAlpha + 2 * moved * kBeta + moved * kGamma);
  }
}

TEST(Price, RecursiveDoublingMovesAllInEachRound) {
  expect_near(seconds("all_reduce", "recursive_doubling", shape(8, 1000), one_host()),
              3 * (kAlpha + 1000 * kBeta + 1000 * kGamma));
  // An extra rank: its input first, its result last. Its partner adds the input, and then sends three messages one after
  // the other; its other sums fall into the time of its sends.
  expect_near(seconds("all_reduce", "recursive_doubling", shape(5, 1000), one_host()),
              4 * (kAlpha + 1000 * kBeta) + 1000 * kGamma);
}

TEST(Price, AChainIsFilledOnceAndThenTakesAChunkATime) {
  // 10 chunks over 3 links: the last rank has the first chunk after 3 messages and one more each message after.
  expect_near(seconds("broadcast", "chain", shape(4, 10000, 1000), one_host()), 12 * (kAlpha + 1000 * kBeta));
  expect_near(seconds("broadcast", "binomial", shape(4, 10000), one_host()), 2 * (kAlpha + 10000 * kBeta));
}

TEST(Price, APortSendsOneMessageAfterTheOther) {
  // The root sends to 7 others; then each of 7 sends to the root, whose port takes one at a time.
  expect_near(seconds("scatter", "direct", shape(8, 8000), one_host()), 7 * (kAlpha + 1000 * kBeta));
  expect_near(seconds("gather", "direct", shape(8, 8000), one_host()), kAlpha + 7 * 1000 * kBeta);
  // Ports work both ways at once.
  expect_near(seconds("all_to_all", "pairwise", shape(8, 8000), one_host()), 7 * (kAlpha + 1000 * kBeta));
}

TEST(Price, AReductionOfAllPartialsInOnePassIsPaidBySource) {
  expect_near(seconds("reduce_scatter", "ordered_exchange", shape(4, 4 * 4096), one_host()),
              3 * (kAlpha + 4096 * kBeta) + 3 * 4096 * kGamma);
}

TEST(Price, CopiesCostWhatIsAskedForThem) {
  Machine machine = one_host();
  machine.kappa_s = 3e-9;
  expect_near(seconds("all_gather", "direct", shape(1, 1000), machine), 1000 * 3e-9);
}

TEST(Price, RanksOfAHostShareItsNetworkInterface) {
  Machine machine;
  machine.host_of_rank = {0, 0, 1, 1};
  machine.between = {kAlpha, kBeta};
  spec::CollectiveShape asked = shape(4, 4000);
  asked.hosts = machine.host_of_rank;
  // Inside is free: each owner of a half exchanges 1000 twice with its fellow, both over one interface. The first to go
  // waits alpha again while the second one's bytes pass.
  expect_near(seconds("all_reduce", "hierarchical:direct+ring", asked, machine), 2 * kAlpha + 3 * 1000 * kBeta);
  // When bytes take longer than alpha, the interface never rests.
  asked.elements = 40000;
  expect_near(seconds("all_reduce", "hierarchical:direct+ring", asked, machine), kAlpha + 4 * 10000 * kBeta);
  asked.elements = 4000;
  const Price found = price(spec::build("all_reduce", "hierarchical:direct+ring", asked), 1, machine);
  ASSERT_EQ(found.hosts.size(), 2u);
  EXPECT_EQ(found.hosts[0].sent_bytes, 4000);
  EXPECT_EQ(found.hosts[1].received_bytes, 4000);
}

TEST(Price, AnInterfaceTakesOneMessageAtATimeInEachDirection) {
  Machine machine;
  machine.between = {kAlpha, kBeta};
  spec::CollectiveShape asked = shape(4, 4000);
  // Ranks 0 and 1 share a host; each sends a block to both other hosts, one after the other, over one interface out.
  machine.host_of_rank = {0, 0, 1, 2};
  spec::CollectiveShape out = asked;
  out.counts = {{0, 0, 1000, 0}, {0, 0, 0, 1000}, {0, 0, 0, 0}, {0, 0, 0, 0}};
  expect_near(seconds("all_to_all", "direct", out, machine), kAlpha + 2 * 1000 * kBeta);
  // The other way round they come over one interface in.
  spec::CollectiveShape in = asked;
  in.counts = {{0, 0, 0, 0}, {0, 0, 0, 0}, {1000, 0, 0, 0}, {0, 1000, 0, 0}};
  expect_near(seconds("all_to_all", "direct", in, machine), kAlpha + 2 * 1000 * kBeta);
  // On hosts of their own nothing is shared.
  machine.host_of_rank = {0, 1, 2, 3};
  expect_near(seconds("all_to_all", "direct", out, machine), kAlpha + 1000 * kBeta);
  expect_near(seconds("all_to_all", "direct", in, machine), kAlpha + 1000 * kBeta);
}

TEST(Price, ABadlyLaidRingCrossesMoreOften) {
  Machine machine;
  machine.host_of_rank = {0, 0, 1, 1};
  machine.between = {0, 8e-9};  // 1 Gbit/s
  machine.inside = {0, 1e-10};
  spec::CollectiveShape asked = shape(4, 16 << 20);
  asked.hosts = machine.host_of_rank;
  const double well = seconds("all_reduce", "ring", asked, machine);
  const double hierarchical = seconds("all_reduce", "hierarchical:direct+ring", asked, machine);
  asked.options.order = spec::round_robin_order(4, asked.hosts);
  const double badly = seconds("all_reduce", "ring", asked, machine);
  // Of 6 steps a well laid ring moves a quarter over each interface, a badly laid one two quarters; the hierarchy moves
  // 2n(H-1)/H = n in all.
  EXPECT_NEAR(well / (6 * (4 << 20) * 8e-9), 1, 1e-9);
  EXPECT_NEAR(badly / (12 * (4 << 20) * 8e-9), 1, 1e-9);
  EXPECT_GT(badly / hierarchical, 2.4);
  EXPECT_GT(well / hierarchical, 1.3);
}

TEST(Price, SegmentsMoveInsideHostsWhileOthersMoveBetweenThem) {
  Machine machine;
  machine.host_of_rank = {0, 0, 1, 1};
  machine.between = {0, 8e-9};
  machine.inside = {0, 2e-9};
  for (const auto* name : {"hierarchical:direct+ring", "ordered_hierarchical"}) {
    spec::CollectiveShape asked = shape(4, 16 << 20);
    asked.hosts = machine.host_of_rank;
    // Half of all elements inside, all between over one interface, half of all inside.
    expect_near(seconds("all_reduce", name, asked, machine), (16 << 20) * (2e-9 + 8e-9));
    // Of 16 segments only the first is waited for before, and only the last one after.
    asked.options.chunk_elements = 1 << 20;
    expect_near(seconds("all_reduce", name, asked, machine), (1 << 20) * 2e-9 + (16 << 20) * 8e-9);
  }
}

TEST(Price, CountsBytesAsTheValidatorDoes) {
  for (const spec::Algorithm& algorithm : spec::algorithms()) {
    const spec::Schedule schedule = spec::build(algorithm.collective, algorithm.name, shape(5, 60));
    const Price found = price(schedule, 4, one_host());
    const spec::ScheduleFacts facts = spec::validate(schedule);
    EXPECT_EQ(found.sent_messages, facts.sent_messages);
    for (std::size_t rank = 0; rank < 5; ++rank) EXPECT_EQ(found.sent_bytes[rank], 4 * facts.sent_elements[rank]);
    EXPECT_LT(found.seconds, 1.0);
  }
}

TEST(Price, OfAScheduleThatCannotFinishIsInfinite) {
  spec::Schedule schedule = spec::build("all_reduce", "ring", shape(3, 30));
  schedule.ranks[1][0].erase(schedule.ranks[1][0].begin());  // its send
  EXPECT_TRUE(std::isinf(price(schedule, 4, one_host()).seconds));
}

}  // namespace
}  // namespace convoy::law

// What a group chooses: by the rules that are built in, by price, and by name.
#include "convoy/comm/engine/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/base/error.h"
#include "convoy/comm/rendezvous/topology_exchange.h"
#include "convoy/comm/store.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLarge = std::int64_t{4} << 20;

// Slow between hosts, quick inside.
law::Machine slow_between() {
  law::Machine machine;
  machine.inside = {2e-6, 1e-10};
  machine.between = {50e-6, 8e-9};
  machine.gamma_s = 1e-10;
  return machine;
}

SelectionOptions with(const spec::HostOfRank& hosts, bool machine = false, const std::string& algorithm = "auto") {
  SelectionOptions options;
  options.hosts = hosts;
  options.algorithm = algorithm;
  if (machine) options.machine = slow_between();
  return options;
}

spec::CollectiveShape shape(int ranks, std::int64_t elements, int leaves = 0) {
  spec::CollectiveShape made;
  made.ranks = ranks;
  made.elements = elements;
  if (leaves > 0) made.layout = {leaves, spec::deal_replicas(leaves, ranks)};
  return made;
}

law::Choice chosen(Selection& selection, const spec::CollectiveShape& shape, DType dtype = DType::kFloat32) {
  return selection.choose("all_reduce", shape, dtype, ReduceOp::kSum);
}

std::string refusal(const SelectionOptions& options, int ranks) {
  const Error error = testing::error_of([&] { check_selection(options, ranks); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message().find('\n'), std::string::npos);
  return error.message();
}

TEST(Selection, GoesByBuiltInRulesWithoutAMachine) {
  Selection one(4, true, with({}));
  EXPECT_EQ(chosen(one, shape(4, kLarge)).algorithm, "ordered_exchange");
  EXPECT_EQ(chosen(one, shape(4, kLarge)).chunk_elements, 4 * (std::int64_t{1} << 19) / 4) << "a shard of 512 KiB each";
  EXPECT_EQ(chosen(one, shape(4, kLarge), DType::kFloat64).chunk_elements, 4 * (std::int64_t{1} << 19) / 8);
  EXPECT_EQ(one.choose("reduce_scatter", shape(4, 9), DType::kInt32, ReduceOp::kMin).algorithm, "ordered_exchange");
  EXPECT_EQ(one.choose("all_gather", shape(4, 9), DType::kUInt8, ReduceOp::kSum).algorithm, "direct");
  EXPECT_EQ(one.choose("broadcast", shape(4, 9), DType::kUInt8, ReduceOp::kSum).algorithm, "binomial");
}

TEST(Selection, SeveralHostsWantAHierarchyForLargeSumsOnly) {
  Selection two(4, false, with({0, 0, 1, 1}));
  EXPECT_EQ(chosen(two, shape(4, kLarge)).algorithm, "ordered_hierarchical");
  EXPECT_EQ(chosen(two, shape(4, 100)).algorithm, "ordered_exchange");
  EXPECT_EQ(chosen(two, shape(4, kLarge, 11)).algorithm, "ordered_hierarchical");
  // Host partials of 16-bit elements would be rounded.
  EXPECT_EQ(chosen(two, shape(4, kLarge), DType::kBFloat16).algorithm, "ordered_exchange");
  EXPECT_EQ(two.choose("all_reduce", shape(4, kLarge), DType::kBFloat16, ReduceOp::kMax).algorithm,
            "ordered_hierarchical");
  // One rank a host has nothing to sum inside; replicas that do not follow each other cannot be summed there.
  Selection apart(4, false, with({0, 1, 2, 3}));
  EXPECT_EQ(chosen(apart, shape(4, kLarge)).algorithm, "ordered_exchange");
  Selection mixed(4, false, with({0, 1, 0, 1}));
  EXPECT_EQ(chosen(mixed, shape(4, kLarge)).algorithm, "ordered_exchange");
}

TEST(Selection, GoesByPriceWhereThereIsAMachine) {
  Selection near(4, false, with({}, true));
  EXPECT_EQ(chosen(near, shape(4, 100)).algorithm, "ordered_direct");
  EXPECT_EQ(chosen(near, shape(4, kLarge)).algorithm, "ordered_exchange");
  Selection priced(4, false, with({0, 0, 1, 1}, true));
  EXPECT_EQ(chosen(priced, shape(4, kLarge)).algorithm, "ordered_hierarchical");
  EXPECT_GT(chosen(priced, shape(4, kLarge)).seconds, 0) << "the price that decided";
  const law::SelectionTable table = selection_table(
      "all_reduce", shape(4, 0),
      [] {
        law::Machine machine = slow_between();
        machine.host_of_rank = {0, 0, 1, 1};
        return machine;
      }(),
      4, true);
  for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{5000}, std::int64_t{100000}, kLarge, 50 * kLarge}) {
    const law::Choice own = chosen(priced, shape(4, elements));
    EXPECT_EQ(own.algorithm, table.choose(4 * elements).algorithm) << elements;
    EXPECT_EQ(own.chunk_elements, table.choose(4 * elements).chunk_elements) << elements;
  }
}

TEST(Selection, PricesNothingOverSharedMemoryOnOneHostNorForManyRanks) {
  Selection memory(4, true, with({}, true));
  EXPECT_EQ(chosen(memory, shape(4, 100)).seconds, 0);
  Selection memory_of_two(4, true, with({0, 0, 1, 1}, true));
  EXPECT_GT(chosen(memory_of_two, shape(4, 100)).seconds, 0);
  Selection most(kMostPricedRanks, false, with({}, true));
  EXPECT_GT(chosen(most, shape(kMostPricedRanks, 100)).seconds, 0);
  Selection many(kMostPricedRanks + 1, false, with({}, true));
  EXPECT_EQ(chosen(many, shape(kMostPricedRanks + 1, 100)).seconds, 0);
}

TEST(Selection, ReproducibleModeTakesOrderedAlgorithmsOnly) {
  for (const spec::HostOfRank& hosts : {spec::HostOfRank{}, spec::HostOfRank{0, 0, 0, 1, 1, 1, 1, 1}}) {
    Selection strict(8, false, with(hosts, true));
    SelectionOptions options = with(hosts, true);
    options.reproducible = false;
    Selection free(8, false, options);
    bool differs = false;
    for (const char* collective : {"all_reduce", "reduce_scatter"}) {
      for (std::int64_t elements = 1; elements <= 16 * kLarge; elements *= 8) {
        const law::Choice choice = strict.choose(collective, shape(8, elements), DType::kFloat32, ReduceOp::kSum);
        EXPECT_TRUE(spec::find_algorithm(collective, choice.algorithm).ordered) << choice.algorithm;
        const law::Choice other = free.choose(collective, shape(8, elements), DType::kFloat32, ReduceOp::kSum);
        differs = differs || !spec::find_algorithm(collective, other.algorithm).ordered;
        // Who carries two replicas counts twice in a mean: only ordered algorithms know.
        const law::Choice uneven = free.choose(collective, shape(8, elements, 11), DType::kFloat32, ReduceOp::kSum);
        EXPECT_TRUE(spec::find_algorithm(collective, uneven.algorithm).ordered) << uneven.algorithm;
      }
    }
    EXPECT_TRUE(differs) << "an unordered algorithm is cheaper somewhere";
  }
}

TEST(Selection, TakesTheAlgorithmThatIsNamedWhereItFits) {
  Selection named(3, true, with({}, false, "ordered_direct"));
  EXPECT_EQ(chosen(named, shape(3, kLarge, 8)).algorithm, "ordered_direct");
  EXPECT_EQ(named.choose("broadcast", shape(3, 9), DType::kUInt8, ReduceOp::kSum).algorithm, "binomial");
  Selection hierarchy(4, false, with({0, 1, 0, 1}, false, "ordered_hierarchical"));
  const Error unfit = testing::error_of([&] { (void)chosen(hierarchy, shape(4, 9)); });
  EXPECT_EQ(unfit.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(unfit.message(),
              HasSubstr("'ordered_hierarchical', which was asked for, needs the replicas of each host"));
  SelectionOptions options = with({}, false, "ring");
  options.reproducible = false;
  Selection ring(3, true, options);
  EXPECT_EQ(chosen(ring, shape(3, 9)).algorithm, "ring");
  const Error several = testing::error_of([&] { (void)chosen(ring, shape(3, 9, 8)); });
  EXPECT_THAT(several.message(), HasSubstr("takes one replica of each rank, and rank 0 carries 3"));
}

TEST(Selection, RefusesInOneLine) {
  EXPECT_THAT(refusal(with({}, false, "rong"), 3), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(refusal(with({}, false, "ring"), 3),
              HasSubstr("'ring' depend on the number of ranks, and results are to be the same on any: take one of "
                        "ordered_exchange, ordered_direct, ordered_hierarchical"));
  EXPECT_THAT(refusal(with({0, 1}), 3), HasSubstr("hosts of 2 ranks are named, there are 3"));
  SelectionOptions free = with({0, 1, 1}, false, "ring");
  free.reproducible = false;
  EXPECT_NO_THROW(check_selection(free, 3));
}

TEST(TopologyExchange, NumbersHostsAndHandsTheMachineOfRank0ToAll) {
  MemoryStore store;
  // Ranks 1 and 2 have come, from one other host; rank 2 knows another machine.
  store.set("group/world/1/topology/1", "another host\n");
  store.set("group/world/1/topology/2", "another host\n9 9 9 9 9 9");
  SelectionOptions own = with({}, true);
  const TopologyExchange exchange({"world", 1, 0, 3, std::chrono::seconds(5)});
  exchange.settle(store, own);
  EXPECT_EQ(own.hosts, (spec::HostOfRank{0, 1, 1}));
  // What rank 0 has left is what another rank reads, digit by digit.
  SelectionOptions others;
  TopologyExchange({"world", 1, 1, 3, std::chrono::seconds(5)}).settle(store, others);
  EXPECT_EQ(others.hosts, (spec::HostOfRank{0, 0, 1})) << "rank 1's text is now this host's";
  ASSERT_TRUE(own.machine.has_value() && others.machine.has_value());
  EXPECT_EQ(others.machine->between.beta_s, slow_between().between.beta_s);
  EXPECT_EQ(others.machine->inside.alpha_s, slow_between().inside.alpha_s);
  EXPECT_EQ(others.machine->gamma_s, slow_between().gamma_s);
  exchange.leave(store);
  EXPECT_FALSE(store.try_get("group/world/1/topology/0").has_value());
}

TEST(TopologyExchange, KeepsWrittenHostsAndNamesWhoDoesNotCome) {
  MemoryStore store;
  store.set("group/world/1/topology/1", "another host\n");
  SelectionOptions written = with({0, 0});
  TopologyExchange({"world", 1, 0, 2, std::chrono::seconds(5)}).settle(store, written);
  EXPECT_EQ(written.hosts, (spec::HostOfRank{0, 0}));
  EXPECT_FALSE(written.machine.has_value());
  const Error late = testing::error_of([&] {
    SelectionOptions options;
    TopologyExchange({"world", 2, 0, 2, std::chrono::milliseconds(100)}).settle(store, options);
  });
  EXPECT_EQ(late.code(), ErrorCode::kTimeout);
  EXPECT_THAT(late.message(), HasSubstr("rank 1 did not come to group 'world'"));
}

}  // namespace
}  // namespace convoy::comm

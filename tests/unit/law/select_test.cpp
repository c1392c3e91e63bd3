// The choice of algorithms by price.
#include "convoy/law/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "convoy/base/error.h"

namespace convoy::law {
namespace {

using testing::HasSubstr;

Machine one_host() { return {{}, {2e-6, 1e-9}, {}, 0.25e-9, 0}; }

Machine two_hosts() {
  Machine machine = one_host();
  machine.host_of_rank = {0, 0, 0, 0, 1, 1, 1, 1};
  machine.between = {30e-6, 8e-9};
  return machine;
}

spec::CollectiveShape ranks(int count) {
  spec::CollectiveShape shape;
  shape.ranks = count;
  return shape;
}

TEST(Select, FewBytesWantFewRoundsAndManyWantFewBytes) {
  const SelectionTable table = make_selection_table("all_reduce", ranks(8), one_host(), {4, 1 << 26});
  EXPECT_EQ(table.choose(4).algorithm, "recursive_doubling");
  EXPECT_EQ(table.choose(1).algorithm, "recursive_doubling") << "below the first size its choice holds";
  EXPECT_EQ(table.choose(1 << 26).algorithm, "halving_doubling");
  EXPECT_EQ(table.choose((1 << 26) - 1).algorithm, "recursive_doubling") << "a row holds until the next one";
}

TEST(Select, SeveralHostsWantAHierarchy) {
  const SelectionTable table = make_selection_table("all_reduce", ranks(8), two_hosts(), {1 << 24});
  EXPECT_THAT(table.rows[0].choice.algorithm, HasSubstr("hierarchical:"));
  EXPECT_EQ(table.hosts, 2);
}

TEST(Select, ReproducibleModeTakesOrderedAlgorithmsOnly) {
  SelectOptions options;
  options.reproducible = true;
  for (const Machine& machine : {one_host(), two_hosts()}) {
    for (const std::int64_t elements : {1, 100000, 10000000}) {
      spec::CollectiveShape shape = ranks(8);
      shape.elements = elements;
      for (const Choice& choice : rank_choices("all_reduce", shape, machine, options)) {
        EXPECT_TRUE(spec::find_algorithm("all_reduce", choice.algorithm).ordered) << choice.algorithm;
      }
    }
  }
  EXPECT_EQ(make_selection_table("all_reduce", ranks(8), two_hosts(), {1 << 24}, options).rows[0].choice.algorithm,
            "ordered_hierarchical");
  EXPECT_EQ(make_selection_table("all_reduce", ranks(2), one_host(), {4}, options).rows[0].choice.algorithm,
            "ordered_direct");
}

TEST(Select, PipelinesGetTheCheapestChunk) {
  spec::CollectiveShape shape = ranks(8);
  shape.elements = 1 << 24;
  double whole = 0;
  double best_chain = 0;
  for (const Choice& choice : rank_choices("broadcast", shape, one_host())) {
    if (choice.algorithm != "chain") continue;
    if (best_chain == 0) {
      best_chain = choice.seconds;
      EXPECT_GT(choice.chunk_elements, 0);
    }
    if (choice.chunk_elements == 0) whole = choice.seconds;
  }
  EXPECT_GT(whole, 5 * best_chain);
}

TEST(Select, RingsFollowTheHosts) {
  Machine machine = two_hosts();
  machine.host_of_rank = {0, 1, 0, 1, 0, 1, 0, 1};
  spec::CollectiveShape shape = ranks(8);
  shape.elements = 1 << 20;
  for (const Choice& choice : rank_choices("all_reduce", shape, machine)) {
    EXPECT_EQ(choice.by_host, spec::find_algorithm("all_reduce", choice.algorithm).takes_order) << choice.algorithm;
  }
}

TEST(Select, ChoicesComeCheapestFirst) {
  spec::CollectiveShape shape = ranks(5);
  shape.elements = 1000;
  const std::vector<Choice> choices = rank_choices("all_gather", shape, one_host());
  ASSERT_EQ(choices.size(), 4u);
  for (std::size_t i = 1; i < choices.size(); ++i) EXPECT_LE(choices[i - 1].seconds, choices[i].seconds);
}

TEST(Select, TableIsForPeople) {
  const std::string text = to_string(make_selection_table("all_reduce", ranks(8), one_host(), {4, 1024, 1 << 26}));
  EXPECT_EQ(text,
            "all_reduce on 8 ranks, 1 host\n"
            "from               algorithm  chunk elements  order  predicted\n"
            "--------------------------------------------------------------\n"
            "4 B       recursive_doubling               -   rank     6.0 us\n"
            "64.0 MiB    halving_doubling               -   rank   132.1 ms\n");
}

TEST(Select, RefusesUnknownCollectives) {
  EXPECT_THROW((void)rank_choices("all_reduces", ranks(2), one_host()), Error);
  EXPECT_THROW((void)make_selection_table("all_reduce", ranks(2), one_host(), {}), Error);
}

}  // namespace
}  // namespace convoy::law

// Prices of exchanges agree with what schedules send, and advised splits bring one partial sum a rank.
#include "convoy/spec/document/exchange_price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/validate.h"

namespace convoy::spec {
namespace {

using ::testing::ElementsAre;

OrderedLayout layout_of(int replicas, int ranks) { return {replicas, deal_replicas(replicas, ranks)}; }

TEST(ExchangePrice, IsThatOfTheSchedule) {
  const std::vector<std::int64_t> buckets = {70'000, 1, 12'345};
  const HostOfRank hosts = {0, 0, 1, 1, 1};
  const OrderedLayout layout = layout_of(7, 5);
  for (const auto& [collective, algorithm] :
       std::vector<std::pair<std::string, std::string>>{{"all_reduce", "ordered_exchange"},
                                                        {"all_reduce", "ordered_direct"},
                                                        {"all_reduce", "ordered_hierarchical"},
                                                        {"all_reduce", "ring"},
                                                        {"reduce_scatter", "ordered_exchange"},
                                                        {"reduce_scatter", "ring"}}) {
    std::vector<std::int64_t> sent(5, 0);
    for (const std::int64_t elements : buckets) {
      CollectiveShape shape;
      shape.ranks = 5;
      shape.elements = elements;
      shape.layout = layout;
      shape.hosts = hosts;
      const ScheduleFacts facts = validate(build(collective, algorithm, shape));
      for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank] += facts.sent_elements[rank];
    }
    const ExchangePrice price = price_exchange(collective, algorithm, layout, hosts, buckets);
    EXPECT_EQ(price.sent_elements, sent) << collective << " " << algorithm;
    EXPECT_EQ(price.ordered, algorithm != "ring");
    EXPECT_EQ(price.elements, 82'346);
    EXPECT_DOUBLE_EQ(price.all_gradients(), std::accumulate(sent.begin(), sent.end(), 0.0) / 82'346);
    EXPECT_DOUBLE_EQ(price.most_gradients(), *std::max_element(sent.begin(), sent.end()) / 82'346.0);
  }
}

TEST(ExchangePrice, NamesWhatThereIsNot) {
  const std::vector<std::int64_t> buckets = {10};
  EXPECT_THROW(price_exchange("all_reduce", "rings", layout_of(4, 2), {}, buckets), Error);
  EXPECT_TRUE(fits_exchange("all_reduce", "ordered_hierarchical", layout_of(4, 4), {0, 0, 1, 1}));
  EXPECT_FALSE(fits_exchange("all_reduce", "ordered_hierarchical", layout_of(4, 4), {0, 1, 0, 1}));
}

TEST(AlignedSplits, GiveEachRankOneSubtree) {
  EXPECT_THAT(aligned_splits(8).even, ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(aligned_splits(8).uneven, ElementsAre(5, 6, 7));
  EXPECT_THAT(aligned_splits(12).even, ElementsAre(1, 3, 6, 12));  // 2 ranks carry {0-3}{4 5} | {6 7}{8-11}
  EXPECT_THAT(aligned_splits(1).even, ElementsAre(1));
  EXPECT_EQ(aligned_splits(1000).looked_at, kMostAdvisedRanks);
  for (int replicas = 1; replicas <= 40; ++replicas) {
    const AlignedSplits splits = aligned_splits(replicas);
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      const bool advised = std::count(splits.even.begin(), splits.even.end(), ranks) +
                               std::count(splits.uneven.begin(), splits.uneven.end(), ranks) >
                           0;
      const OrderedLayout layout = layout_of(replicas, ranks);
      // What is advised sends as little as if each rank had one replica.
      const std::vector<std::int64_t> bucket = {std::int64_t{ranks} << 13};
      const auto price = price_exchange("reduce_scatter", "ordered_exchange", layout, {}, bucket);
      const auto least = price_exchange("reduce_scatter", "ring", layout, {}, bucket);
      EXPECT_EQ(price.most_gradients() == least.most_gradients(), advised || ranks == 1) << replicas << " on " << ranks;
    }
  }
}

TEST(KeptSums, AreThoseOfTheTree) {
  EXPECT_EQ(most_kept_sums(8, {0, 8}), 3);     // {0-3}{4 5}{6} before 7 comes
  EXPECT_EQ(most_kept_sums(8, {0, 4}), 2);     // {0 1}{2}
  EXPECT_EQ(most_kept_sums(8, {3, 6}), 2);     // {3}{4 5}; {3}{4} before
  EXPECT_EQ(most_kept_sums(49, {25, 49}), 7);  // more than log2 + 1: only an aligned split promises that
  for (int replicas = 1; replicas <= 100; ++replicas) {
    for (int ranks = 1; ranks <= std::min(replicas, 9); ++ranks) {
      for (const ReplicaRange& range : deal_replicas(replicas, ranks)) {
        const auto log2 = [](int number) { return std::bit_width(static_cast<unsigned>(number)) - 1; };
        const bool aligned = maximal_subtrees(replicas, range).size() == 1;
        EXPECT_LE(most_kept_sums(replicas, range), aligned ? log2(range.size()) + 1 : 2 * log2(replicas) + 1);
      }
    }
  }
}

TEST(NumberWords, JoinsNeighbours) {
  EXPECT_EQ(number_words(std::vector<int>{}), "none");
  EXPECT_EQ(number_words(std::vector<int>{3}), "3");
  EXPECT_EQ(number_words(std::vector<int>{1, 2, 4, 5, 6, 9}), "1, 2, 4 to 6, 9");
}

}  // namespace
}  // namespace convoy::spec

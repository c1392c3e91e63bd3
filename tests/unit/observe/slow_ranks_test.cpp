// The slow rank is named by its own work, and nobody else is.
#include "convoy/observe/slow_ranks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

TEST(SlowRanks, NamesTheOneRankThatIsSlow) {
  SlowRanks ranks(4);
  for (int step = 0; step < 20; ++step) ranks.add_step(std::vector<double>{5.0 + 0.1 * (step % 3), 5.2, 55.0, 4.9});
  const std::vector<SlowRank> slow = ranks.slow();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].rank, 2);
  EXPECT_EQ(slow[0].own_work_ms, 55.0);
  EXPECT_EQ(slow[0].median_ms, ranks.medians()[0]) << "the lower middle of 4.9, 5.1, 5.2 and 55";
  EXPECT_GE(slow[0].own_work_ms, 5.0 * slow[0].median_ms);
  EXPECT_EQ(ranks.to_json()["slow"][0]["rank"], 2);
  EXPECT_EQ(ranks.to_json()["own_work_ms"][3], 4.9);
}

TEST(SlowRanks, NamesTheSlowOneOfTwo) {
  SlowRanks ranks(2);
  ranks.add_step(std::vector<double>{55.0, 5.0});
  ASSERT_EQ(ranks.slow().size(), 1u);
  EXPECT_EQ(ranks.slow()[0].rank, 0);
}

TEST(SlowRanks, OneSlowStepIsNoSlowRank) {
  SlowRanks ranks(3);
  for (int step = 0; step < 9; ++step) ranks.add_step(std::vector<double>{5.0, step == 4 ? 500.0 : 5.0, 5.0});
  EXPECT_TRUE(ranks.slow().empty());
}

TEST(SlowRanks, ForgetWhatIsOlderThanTheWindow) {
  SlowRankOptions options;
  options.window = 3;
  SlowRanks ranks(2, options);
  for (int step = 0; step < 10; ++step) ranks.add_step(std::vector<double>{5.0, 50.0});
  EXPECT_EQ(ranks.slow().size(), 1u);
  for (int step = 0; step < 2; ++step) ranks.add_step(std::vector<double>{5.0, 5.0});
  EXPECT_TRUE(ranks.slow().empty());
}

TEST(SlowRanks, SlowestComesFirst) {
  SlowRanks ranks(5);
  ranks.add_step(std::vector<double>{1.0, 3.0, 1.0, 4.0, 1.0});
  const auto slow = ranks.slow();
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].rank, 3);
  EXPECT_EQ(slow[1].rank, 1);
}

TEST(SlowRanks, OfNothingAreNone) {
  SlowRanks ranks(2);
  EXPECT_TRUE(ranks.slow().empty());
  ranks.add_step(std::vector<double>{0.0, 0.0});
  EXPECT_TRUE(ranks.slow().empty());
}

TEST(SlowRanks, RefuseWhatMakesNoSense) {
  SlowRanks ranks(2);
  EXPECT_THROW(ranks.add_step(std::vector<double>{1.0}), Error);
  EXPECT_THROW(SlowRanks(0), Error);
  EXPECT_THROW(SlowRanks(2, {1.0, 10}), Error);
  EXPECT_THROW(SlowRanks(2, {2.0, 0}), Error);
}

}  // namespace
}  // namespace convoy::observe

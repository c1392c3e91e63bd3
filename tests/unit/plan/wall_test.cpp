// Each wall from numbers that show it, with the strategies that answer it.
#include "convoy/plan/wall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy::plan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kMiB = 1024.0 * 1024.0;

// A small model on a machine with room, whose time is computing.
WallFacts fine() {
  WallFacts facts;
  facts.memory_limit_bytes = 1000 * kMiB;
  facts.taken_bytes = 100 * kMiB;
  facts.parameter_bytes = 20 * kMiB;
  facts.gradient_bytes = 40 * kMiB;
  facts.optimizer_bytes = 20 * kMiB;
  facts.pass_base_bytes = 10 * kMiB;
  facts.bytes_per_sample = 2 * kMiB;
  facts.local_batch = 64;
  facts.largest_layer = "output";
  facts.largest_layer_bytes = 30 * kMiB;
  facts.step_ms = 50;
  facts.input_wait_ms = 1;
  facts.optimizer_ms = 2;
  facts.total_s = 7200;
  return facts;
}

std::vector<std::string> strategies(const WallFinding& finding) {
  std::vector<std::string> names;
  for (const WallAnswer& answer : finding.answers) names.push_back(answer.strategy);
  return names;
}

TEST(Walls, TimeIsTheOnlyOneWhereAllFitsAndInputIsThere) {
  const auto walls = find_walls(fine());
  ASSERT_EQ(walls.size(), 1u);
  EXPECT_EQ(walls[0].wall, Wall::kTime);
  EXPECT_THAT(walls[0].words, HasSubstr("50.00 ms"));
  EXPECT_EQ(strategies(walls[0]), std::vector<std::string>{"data"});
}

TEST(Walls, AnExpensiveUpdateAsksForDivision) {
  WallFacts facts = fine();
  facts.optimizer_ms = 10;
  EXPECT_THAT(strategies(find_walls(facts)[0]), Contains("divided_update"));
}

TEST(Walls, InputComesBeforeTime) {
  WallFacts facts = fine();
  facts.input_wait_ms = 6;
  const auto walls = find_walls(facts);
  ASSERT_EQ(walls.size(), 2u);
  EXPECT_EQ(walls[0].wall, Wall::kInput);
  EXPECT_EQ(walls[1].wall, Wall::kTime);
  EXPECT_EQ(strategies(walls[0])[0], "more_prefetch");
  EXPECT_THAT(walls[0].words, HasSubstr("12%"));
}

TEST(Walls, ALayerThatDoesNotFitAsksForTensorParallelismOnly) {
  WallFacts facts = fine();
  facts.parameter_bytes = 400 * kMiB;
  facts.gradient_bytes = 800 * kMiB;
  facts.optimizer_bytes = 800 * kMiB;
  facts.largest_layer = "embedding";
  facts.largest_layer_bytes = 901 * kMiB;
  const auto walls = find_walls(facts);
  EXPECT_EQ(walls[0].wall, Wall::kLayer);
  EXPECT_THAT(walls[0].words, HasSubstr("'embedding'"));
  EXPECT_EQ(strategies(walls[0]), std::vector<std::string>{"tensor"});
  EXPECT_EQ(walls[1].wall, Wall::kState) << "the rest does not fit either";
}

TEST(Walls, StateThatDoesNotFitIsShardedOrStaged) {
  WallFacts facts = fine();
  facts.optimizer_bytes = 841 * kMiB;  // 901 with the rest, and 900 are free
  const auto walls = find_walls(facts);
  EXPECT_EQ(walls[0].wall, Wall::kState);
  EXPECT_THAT(walls[0].words, HasSubstr("do not fit"));
  EXPECT_THAT(strategies(walls[0]), Contains("sharded"));
  EXPECT_THAT(strategies(walls[0]), Contains("pipeline"));
}

TEST(Walls, StateThatFitsButLeavesLittleDominates) {
  WallFacts facts = fine();
  facts.optimizer_bytes = 400 * kMiB;  // 460 of 900
  const auto walls = find_walls(facts);
  EXPECT_EQ(walls[0].wall, Wall::kState);
  EXPECT_THAT(walls[0].words, HasSubstr("dominate"));
  EXPECT_THAT(walls[0].words, HasSubstr("51%"));
  facts.optimizer_bytes = 380 * kMiB;
  EXPECT_EQ(find_walls(facts)[0].wall, Wall::kTime);
}

TEST(Walls, ActivationsAskForSmallerBatchesWhileASampleFits) {
  WallFacts facts = fine();
  facts.local_batch = 500;  // 80 + 10 + 1000 MiB
  const auto walls = find_walls(facts);
  EXPECT_EQ(walls[0].wall, Wall::kActivations);
  EXPECT_EQ(strategies(walls[0])[0], "smaller_batch");
  EXPECT_THAT(walls[0].answers[0].why, HasSubstr("at most 405 samples"));
  facts.bytes_per_sample = 900 * kMiB;
  facts.local_batch = 1;
  EXPECT_THAT(strategies(find_walls(facts)[0]), Not(Contains("smaller_batch")));
}

}  // namespace
}  // namespace convoy::plan

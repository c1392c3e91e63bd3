// Shards are whole canonical blocks, whoever holds them.
#include "convoy/spec/blocks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

RC_GTEST_PROP(ShardRange, CoversEverythingByWholeBlocks, ()) {
  const std::int64_t block = *rc::gen::inRange(1, 50);
  const std::int64_t elements = *rc::gen::inRange(0, 2000);
  const int shards = *rc::gen::inRange(1, 70);
  std::int64_t next = 0;
  std::int64_t fewest = elements;
  std::int64_t most = 0;
  for (int index = 0; index < shards; ++index) {
    const ElementRange range = shard_range(elements, shards, index, block);
    RC_ASSERT(range.begin == next);
    RC_ASSERT(range.size() >= 0);
    RC_ASSERT(range.end % block == 0 || range.end == elements);
    const std::int64_t blocks = (range.size() + block - 1) / block;
    fewest = std::min(fewest, blocks);
    most = std::max(most, blocks);
    next = range.end;
  }
  RC_ASSERT(next == elements);
  RC_ASSERT(most - fewest <= 1);
}

TEST(ShardRange, FallsOnTheCanonicalBlockByDefault) {
  EXPECT_EQ(shard_range(3 * kBlockElements + 1, 2, 0), (ElementRange{0, 2 * kBlockElements}));
  EXPECT_EQ(shard_range(3 * kBlockElements + 1, 2, 1), (ElementRange{2 * kBlockElements, 3 * kBlockElements + 1}));
}

TEST(ShardRange, LeavesLateShardsEmptyWhenThereAreFewBlocks) {
  EXPECT_EQ(shard_range(5, 4, 0), (ElementRange{0, 5}));
  for (int index = 1; index < 4; ++index) EXPECT_EQ(shard_range(5, 4, index), (ElementRange{5, 5}));
  EXPECT_EQ(shard_range(0, 3, 2).size(), 0);
}

TEST(ShardRange, RefusesAShardThatIsNotThere) {
  EXPECT_THROW(shard_range(10, 0, 0), Error);
  EXPECT_THROW(shard_range(10, 2, 2), Error);
  EXPECT_THROW(shard_range(10, 2, -1), Error);
  EXPECT_THROW(shard_range(-1, 2, 0), Error);
  EXPECT_THROW(shard_range(10, 2, 0, 0), Error);
}

}  // namespace
}  // namespace convoy::spec

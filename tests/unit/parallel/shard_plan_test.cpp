// Who sums and updates what in a divided exchange.
#include "convoy/parallel/data/shard_plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "convoy/spec/blocks.h"

namespace convoy::parallel {
namespace {

constexpr std::int64_t kBlock = spec::kBlockElements;

// Parameters one after the other, each start a multiple of 16.
std::vector<FlatPlace> places_of(const std::vector<std::int64_t>& sizes) {
  std::vector<FlatPlace> places;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    places.push_back({at, size});
    at += (size + 15) / 16 * 16;
  }
  return places;
}

std::int64_t end_of(const std::vector<FlatPlace>& places) {
  return places.empty() ? 0 : places.back().offset + (places.back().elements + 15) / 16 * 16;
}

// How often each element of the flat space is in a share.
std::vector<int> cover(const SharesByRank& shares, std::int64_t elements) {
  std::vector<int> times(static_cast<std::size_t>(elements), 0);
  for (const auto& slices : shares) {
    for (const params::FlatSlice& slice : slices) {
      for (std::int64_t i = slice.begin; i < slice.begin + slice.count; ++i) ++times[static_cast<std::size_t>(i)];
    }
  }
  return times;
}

void expect_each_parameter_once(const std::vector<int>& times, const std::vector<FlatPlace>& places) {
  std::vector<int> expected(times.size(), 0);
  for (const FlatPlace& place : places) {
    for (std::int64_t i = 0; i < place.elements; ++i) expected[static_cast<std::size_t>(place.offset + i)] = 1;
  }
  EXPECT_EQ(times, expected);
}

TEST(ShardPlan, GivesEachElementToOneRankAndEachBlockToOneNorm) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 9; ++i) sizes.push_back(static_cast<std::int64_t>(random() % 5 == 0 ? random() % 40000 : random() % 300));
    const std::vector<FlatPlace> places = places_of(sizes);
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::int64_t> bytes;
    for (const std::int64_t size : sizes) bytes.push_back(4 * size);
    const std::vector<Bucket> buckets = make_buckets(order, bytes, 1 << 15);
    const int ranks = 1 + round % 5;
    const std::int64_t elements = end_of(places);
    std::vector<int> formed(static_cast<std::size_t>((elements + kBlock - 1) / kBlock), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const ShardPlan plan = plan_shards(places, buckets, ranks, rank);
      const std::vector<int> times = cover(*plan.shares, elements);
      expect_each_parameter_once(times, places);
      ASSERT_EQ(plan.own_blocks.size(), buckets.size());
      const auto form = [&](const std::vector<BlockRun>& runs) {
        for (const BlockRun& run : runs) {
          for (std::int64_t block = run.begin; block < run.end; ++block) ++formed[static_cast<std::size_t>(block)];
        }
      };
      for (const auto& runs : plan.own_blocks) form(runs);
      if (rank == 0) form(plan.mixed_blocks);
      // A block of its own has no element of another rank, and is complete with its bucket.
      SharesByRank others = *plan.shares;
      others[static_cast<std::size_t>(rank)].clear();
      const std::vector<int> foreign = cover(others, elements);
      SharesByRank later(1);
      for (std::size_t b = buckets.size(); b-- > 0;) {
        for (const BlockRun& run : plan.own_blocks[b]) {
          const std::vector<int> missing = cover(later, elements);
          for (std::int64_t i = run.begin * kBlock; i < std::min(run.end * kBlock, elements); ++i) {
            ASSERT_EQ(foreign[static_cast<std::size_t>(i)] + missing[static_cast<std::size_t>(i)], 0);
          }
        }
        const auto& own = plan.buckets[b][static_cast<std::size_t>(rank)];
        later[0].insert(later[0].end(), own.begin(), own.end());
      }
    }
    std::int64_t empty = 0;
    for (std::size_t block = 0; block < formed.size(); ++block) {
      ASSERT_LE(formed[block], 1) << "block " << block;
      if (formed[block] == 0) ++empty;
    }
    EXPECT_EQ(empty, 0) << "these parameters leave no block without elements";
  }
}

TEST(ShardPlan, DividesAboutEvenly) {
  const std::vector<FlatPlace> places = places_of({6291456, 2048, 4194304, 2048, 20480, 10});
  const std::vector<Bucket> buckets = make_buckets({5, 4, 3, 2, 1, 0}, {25165824, 8192, 16777216, 8192, 81920, 40}, 4 << 20);
  const ShardPlan plan = plan_shards(places, buckets, 2, 0);
  std::vector<std::int64_t> elements;
  for (const auto& slices : *plan.shares) {
    elements.push_back(0);
    for (const params::FlatSlice& slice : slices) elements.back() += slice.count;
  }
  EXPECT_LE(std::abs(elements[0] - elements[1]), static_cast<std::int64_t>(buckets.size()) * kBlock);
}

TEST(ShardPlan, LeavesOutWhatIsInNoBucket) {
  const std::vector<FlatPlace> places = places_of({100, 5000, 100});
  const std::vector<Bucket> buckets = make_buckets({2, 0}, {400, 20000, 400}, 1 << 20);
  const ShardPlan plan = plan_shards(places, buckets, 2, 0);
  for (const auto& slices : *plan.shares) {
    for (const params::FlatSlice& slice : slices) EXPECT_NE(slice.slot, 1U) << "a frozen parameter is nobody's";
  }
}

TEST(EvenShares, CoverEachParameterOnce) {
  const std::vector<FlatPlace> places = places_of({70000, 3, 0, 9000, 17});
  for (const int sharers : {1, 2, 3, 7}) {
    const auto shares = plan_even_shares(places, end_of(places), sharers);
    ASSERT_EQ(shares->size(), static_cast<std::size_t>(sharers));
    expect_each_parameter_once(cover(*shares, end_of(places)), places);
  }
}

}  // namespace
}  // namespace convoy::parallel

#include "convoy/parallel/data/shard_plan.h"

#include <algorithm>

#include "convoy/spec/blocks.h"

namespace convoy::parallel {
namespace {

constexpr int kNobody = -1;
constexpr int kMixed = -2;

// Who has the elements of a block, and the last bucket that brings any.
struct BlockOwner {
  int rank = kNobody;
  std::size_t bucket = 0;
};

void add_run(std::vector<BlockRun>& runs, std::int64_t block) {
  if (!runs.empty() && runs.back().end == block) {
    ++runs.back().end;
  } else {
    runs.push_back({block, block + 1});
  }
}

// Cuts the bucket's elements [part.begin, part.end) into slices of the flat space.
std::vector<params::FlatSlice> slices_of(const Bucket& bucket, const std::vector<FlatPlace>& places,
                                         spec::ElementRange part) {
  std::vector<params::FlatSlice> slices;
  std::int64_t at = 0;
  for (const std::size_t slot : bucket.slots) {
    const FlatPlace& place = places[slot];
    const std::int64_t begin = std::max(part.begin, at);
    const std::int64_t end = std::min(part.end, at + place.elements);
    if (begin < end) slices.push_back({slot, place.offset + begin - at, end - begin});
    at += place.elements;
  }
  return slices;
}

}  // namespace

ShardPlan plan_shards(const std::vector<FlatPlace>& places, const std::vector<Bucket>& buckets, int ranks, int rank) {
  ShardPlan plan;
  auto shares = std::make_shared<SharesByRank>(static_cast<std::size_t>(ranks));
  std::int64_t elements = 0;
  for (const FlatPlace& place : places) elements = std::max(elements, place.offset + place.elements);
  std::vector<BlockOwner> owners(static_cast<std::size_t>((elements + spec::kBlockElements - 1) / spec::kBlockElements));
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    std::int64_t whole = 0;
    for (const std::size_t slot : buckets[b].slots) whole += places[slot].elements;
    SharesByRank by_rank;
    for (int r = 0; r < ranks; ++r) {
      by_rank.push_back(slices_of(buckets[b], places, spec::shard_range(whole, ranks, r)));
      for (const params::FlatSlice& slice : by_rank.back()) {
        (*shares)[static_cast<std::size_t>(r)].push_back(slice);
        const std::int64_t last = (slice.begin + slice.count - 1) / spec::kBlockElements;
        for (std::int64_t block = slice.begin / spec::kBlockElements; block <= last; ++block) {
          BlockOwner& owner = owners[static_cast<std::size_t>(block)];
          owner.rank = owner.rank == kNobody || owner.rank == r ? r : kMixed;
          owner.bucket = b;
        }
      }
    }
    plan.buckets.push_back(std::move(by_rank));
  }
  plan.shares = std::move(shares);
  plan.own_blocks.resize(buckets.size());
  for (std::size_t block = 0; block < owners.size(); ++block) {
    const auto number = static_cast<std::int64_t>(block);
    if (owners[block].rank == rank) add_run(plan.own_blocks[owners[block].bucket], number);
    if (owners[block].rank == kMixed) add_run(plan.mixed_blocks, number);
  }
  return plan;
}

std::shared_ptr<const SharesByRank> plan_even_shares(const std::vector<FlatPlace>& places, std::int64_t elements,
                                                     int sharers) {
  auto shares = std::make_shared<SharesByRank>();
  for (int place = 0; place < sharers; ++place) {
    const spec::ElementRange part = spec::shard_range(elements, sharers, place);
    std::vector<params::FlatSlice> slices;
    for (std::size_t slot = 0; slot < places.size(); ++slot) {
      const std::int64_t begin = std::max(part.begin, places[slot].offset);
      const std::int64_t end = std::min(part.end, places[slot].offset + places[slot].elements);
      if (begin < end) slices.push_back({slot, begin, end - begin});
    }
    shares->push_back(std::move(slices));
  }
  return shares;
}

}  // namespace convoy::parallel

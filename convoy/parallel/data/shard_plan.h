// The shard plan of a divided exchange: which elements of each bucket a rank sums and updates, and whose block norms it
// can form alone.
//
// A bucket's elements follow each other in the order of its parameters; rank r takes spec::shard_range of them. Canonical
// blocks lie across the whole flat space, so a few of them have elements of two ranks: these are *mixed*.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/parallel/data/buckets.h"
#include "convoy/params/update/divided_update.h"

namespace convoy::parallel {

/// Where a parameter lies in the flat space.
struct FlatPlace {
  /// Its first element.
  std::int64_t offset = 0;
  /// How many elements it has.
  std::int64_t elements = 0;
};

/// Canonical blocks [begin, end) of the flat space.
struct BlockRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

/// Slices of the flat space by rank.
using SharesByRank = std::vector<std::vector<params::FlatSlice>>;

/// Who sums and updates what.
struct ShardPlan {
  /// For each bucket what each rank sums, in the order of the bucket's elements.
  std::vector<SharesByRank> buckets;
  /// What each rank updates: all that it sums.
  std::shared_ptr<const SharesByRank> shares;
  /// For each bucket the blocks of one rank alone whose sums are complete there once this bucket's and all earlier ones'
  /// are; those of the rank for which the plan was made.
  std::vector<std::vector<BlockRun>> own_blocks;
  /// The mixed blocks.
  std::vector<BlockRun> mixed_blocks;
};

/// Plans for `ranks` ranks; `own_blocks` are those of `rank`. `places` has each parameter's place by its number.
ShardPlan plan_shards(const std::vector<FlatPlace>& places, const std::vector<Bucket>& buckets, int ranks, int rank);

/// Returns shares that divide the whole flat space among `sharers`, in order, for where every rank has the whole sum.
std::shared_ptr<const SharesByRank> plan_even_shares(const std::vector<FlatPlace>& places, std::int64_t elements,
                                                     int sharers);

}  // namespace convoy::parallel

// Canonical blocks: the fixed division of a flat space that sums over it follow, whoever holds which part.
#pragma once

#include <cstdint>

namespace convoy::spec {

/// The elements of one canonical block. Norms, finite checks and digests are defined over these blocks, and shard
/// borders fall on them, so that no way of sharding changes a result.
inline constexpr std::int64_t kBlockElements = 4096;

/// A range of elements [begin, end).
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Returns the number of elements.
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// Returns the part of `elements` elements that shard `index` of `shards` holds: whole blocks, as even as blocks allow.
/// The ranges of all shards follow each other and cover everything; late ones may be empty.
/// Errors:     kInvalidArgument when there is no such shard
ElementRange shard_range(std::int64_t elements, int shards, int index, std::int64_t block = kBlockElements);

}  // namespace convoy::spec

#include "convoy/spec/blocks.h"

#include <algorithm>

#include "convoy/base/error.h"

namespace convoy::spec {

ElementRange shard_range(std::int64_t elements, int shards, int index, std::int64_t block) {
  if (shards < 1 || index < 0 || index >= shards || elements < 0 || block < 1) {
    throw Error(ErrorCode::kInvalidArgument, "no such shard");
  }
  const std::int64_t blocks = (elements + block - 1) / block;
  const std::int64_t whole = blocks / shards;
  const std::int64_t longer = blocks % shards;
  const auto first_block = [&](std::int64_t i) { return i * whole + std::min(i, longer); };
  return {std::min(elements, first_block(index) * block), std::min(elements, first_block(index + 1) * block)};
}

}  // namespace convoy::spec

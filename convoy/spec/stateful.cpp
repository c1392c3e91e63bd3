#include "convoy/spec/stateful.h"

#include "convoy/base/error.h"

namespace convoy::spec {

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::kReplicated: return "replicated";
    case Placement::kShard: return "shard";
    case Placement::kOwned: return "owned";
  }
  return "unknown";
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) {
      throw Error(ErrorCode::kInvalidArgument, "a tensor's shape has a negative size or too many elements");
    }
  }
  return count;
}

}  // namespace convoy::spec

// How many bytes of gradients are exchanged together, where the recipe leaves it open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/law/price.h"
#include "convoy/spec/recipe.h"

namespace convoy::plan {

/// A size and where it comes from.
struct BucketChoice {
  /// Bytes of gradients in one bucket.
  std::int64_t bytes = 0;
  /// "recipe", "calibration" (measured or written links) or "built in".
  std::string source;
};

/// Chooses the size of buckets: that of the recipe, or the one at which what an operation costs however small it is makes
/// up a twentieth of the time on the slowest link, within 64 KiB to 32 MiB; without a machine spec::kBuiltInBucketBytes.
/// Smaller buckets overlap more of the exchange with backward, larger ones cost fewer operations.
BucketChoice choose_bucket_bytes(const spec::Recipe& recipe, const std::optional<law::Machine>& machine);

}  // namespace convoy::plan

// Fits what a message costs to measurements of messages of several sizes.
#pragma once

#include <cstdint>
#include <span>

#include "convoy/law/price.h"

namespace convoy::plan {

/// How long messages of one size take.
struct MessageTime {
  /// The size.
  std::int64_t bytes = 0;
  /// Seconds, one way.
  double seconds = 0;
};

/// alpha + bytes x beta, and how well it tells what was measured.
struct LinkFit {
  /// What a message costs.
  law::LinkCost cost;
  /// Root mean square of (told - measured) / measured.
  double relative_error = 0;
  /// The largest of them, without its sign.
  double worst_error = 0;
};

/// Returns the alpha and beta, neither negative, with the least sum of squares of relative errors: with sizes that grow
/// by a factor, small messages weigh as much as large ones.
/// Errors:     kInvalidArgument with fewer than two sizes, or where a time is not positive
LinkFit fit_link(std::span<const MessageTime> times);

}  // namespace convoy::plan

#include "convoy/observe/quantile.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::observe {

double quantile(std::span<const double> values, double q) {
  if (values.empty()) throw Error(ErrorCode::kInvalidArgument, "a quantile of no values");
  if (!(q >= 0.0 && q <= 1.0)) throw Error(ErrorCode::kInvalidArgument, "a quantile lies between 0 and 1");
  std::vector<double> sorted(values.begin(), values.end());
  if (std::any_of(sorted.begin(), sorted.end(), [](double value) { return std::isnan(value); })) {
    throw Error(ErrorCode::kInvalidArgument, "a quantile of values of which one is not a number");
  }
  std::sort(sorted.begin(), sorted.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  if (share == 0.0) return sorted[below];
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

}  // namespace convoy::observe

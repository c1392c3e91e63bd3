// Median and quantiles: the one place where measurements become a number.
#pragma once

#include <span>

namespace convoy::observe {

/// Returns the q-quantile of the values, q in [0, 1]: linear between the two nearest of the sorted values, the smallest
/// for 0 and the largest for 1 (position q (n - 1); the definition 7 of Hyndman and Fan, NumPy's default).
/// Errors:     kInvalidArgument when there are no values, one is not a number, or q lies outside
/// Cost:       sorts a copy
double quantile(std::span<const double> values, double q);

/// Returns the middle of the values.
inline double median(std::span<const double> values) { return quantile(values, 0.5); }

/// Returns the value that 95 of 100 do not exceed.
inline double p95(std::span<const double> values) { return quantile(values, 0.95); }

}  // namespace convoy::observe

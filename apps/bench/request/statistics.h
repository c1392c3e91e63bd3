// What is told of many measurements of one thing.
#pragma once

#include <vector>

namespace convoy::bench {

/// Microseconds of many measurements.
struct Statistics {
  /// Half of them were at most this.
  double median_us = 0;
  /// 19 of 20 were at most this.
  double p95_us = 0;
  /// The shortest.
  double min_us = 0;
  /// The middle half's width over the median.
  double spread = 0;
};

/// Returns the statistics of seconds; none may be missing.
Statistics statistics_of(std::vector<double> seconds);

/// Returns a number of three or so digits, so that files say what was measured and no more.
double rounded(double value);

}  // namespace convoy::bench

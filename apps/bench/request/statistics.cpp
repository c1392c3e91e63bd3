// Quantiles.
#include "apps/bench/request/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace convoy::bench {

Statistics statistics_of(std::vector<double> seconds) {
  Statistics all;
  if (seconds.empty()) return all;
  std::sort(seconds.begin(), seconds.end());
  // The nearest rank: a time that was measured, never one between two.
  const auto quantile = [&](double share) {
    const double place = std::ceil(share * static_cast<double>(seconds.size())) - 1;
    return seconds[static_cast<std::size_t>(std::max(0.0, place))] * 1e6;
  };
  all.median_us = quantile(0.5);
  all.p95_us = quantile(0.95);
  all.min_us = seconds.front() * 1e6;
  all.spread = all.median_us > 0 ? (quantile(0.75) - quantile(0.25)) / all.median_us : 0;
  return all;
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace convoy::bench

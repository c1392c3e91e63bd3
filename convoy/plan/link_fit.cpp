// Weighted least squares with two unknowns.
#include "convoy/plan/link_fit.h"

#include <algorithm>
#include <cmath>

#include "convoy/base/error.h"

namespace convoy::plan {
namespace {

// Sums over measurements, each weighted by 1 / seconds^2: the errors that count are relative.
struct Sums {
  double w = 0;
  double wx = 0;
  double wxx = 0;
  double wy = 0;
  double wxy = 0;
};

Sums sums_of(std::span<const MessageTime> times) {
  Sums sums;
  for (const MessageTime& time : times) {
    const double weight = 1 / (time.seconds * time.seconds);
    const auto bytes = static_cast<double>(time.bytes);
    sums.w += weight;
    sums.wx += weight * bytes;
    sums.wxx += weight * bytes * bytes;
    sums.wy += weight * time.seconds;
    sums.wxy += weight * bytes * time.seconds;
  }
  return sums;
}

}  // namespace

LinkFit fit_link(std::span<const MessageTime> times) {
  bool varies = false;
  for (const MessageTime& time : times) {
    varies = varies || time.bytes != times.front().bytes;
    if (time.seconds > 0 && std::isfinite(time.seconds)) continue;
    throw Error(ErrorCode::kInvalidArgument, "a message's time must be positive");
  }
  if (!varies) throw Error(ErrorCode::kInvalidArgument, "alpha and beta need messages of two sizes or more");
  const Sums sums = sums_of(times);
  const double determinant = sums.w * sums.wxx - sums.wx * sums.wx;
  LinkFit fit;
  fit.cost.alpha_s = (sums.wy * sums.wxx - sums.wxy * sums.wx) / determinant;
  fit.cost.beta_s = (sums.w * sums.wxy - sums.wx * sums.wy) / determinant;
  // At the border of what makes sense the other one alone is fitted.
  if (fit.cost.alpha_s < 0) fit.cost = {0, sums.wxy / sums.wxx};
  if (fit.cost.beta_s < 0) fit.cost = {sums.wy / sums.w, 0};
  double squares = 0;
  for (const MessageTime& time : times) {
    const double told = fit.cost.alpha_s + static_cast<double>(time.bytes) * fit.cost.beta_s;
    const double error = std::abs(told / time.seconds - 1);
    squares += error * error;
    fit.worst_error = std::max(fit.worst_error, error);
  }
  fit.relative_error = std::sqrt(squares / static_cast<double>(times.size()));
  return fit;
}

}  // namespace convoy::plan

#include "convoy/eval/ranked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"

namespace convoy::eval {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A number as the unrounded sum of two doubles, the second below the first one's last bit (Dekker, Knuth).
struct DoubleDouble {
  double high = 0.0;
  double low = 0.0;
};

DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

DoubleDouble add(const DoubleDouble& a, const DoubleDouble& b) {
  const DoubleDouble sum = two_sum(a.high, b.high);
  return two_sum(sum.high, sum.low + a.low + b.low);
}

DoubleDouble divide(const DoubleDouble& a, double by) {
  const double quotient = a.high / by;
  const double rest = std::fma(-quotient, by, a.high) + a.low;
  return two_sum(quotient, rest / by);
}

DoubleDouble product(std::int64_t a, std::int64_t b) {
  const auto x = static_cast<double>(a);
  const auto y = static_cast<double>(b);
  const double rounded = x * y;
  return {rounded, std::fma(x, y, -rounded)};
}

}  // namespace

double BinaryRates::accuracy() const {
  return ratio(true_positives + true_negatives, true_positives + false_positives + false_negatives + true_negatives);
}
double BinaryRates::precision() const { return ratio(true_positives, true_positives + false_positives); }
double BinaryRates::recall() const { return ratio(true_positives, true_positives + false_negatives); }
double BinaryRates::f1() const {
  return ratio(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
}

std::optional<double> RankedCurve::roc_auc() const {
  if (positives() == 0 || negatives() == 0) return std::nullopt;
  // Each negative of a step loses to the positives above it (2 halves) and ties with those of its own step (1 half).
  std::uint64_t halves = 0;
  Step above;
  for (const Step& step : steps_) {
    const auto here = static_cast<std::uint64_t>(step.false_positives - above.false_positives);
    halves += here * static_cast<std::uint64_t>(above.true_positives + step.true_positives);
    above = step;
  }
  const auto pairs = static_cast<std::uint64_t>(positives()) * static_cast<std::uint64_t>(negatives());
  return static_cast<double>(halves) / (2.0 * static_cast<double>(pairs));
}

std::optional<double> RankedCurve::pr_auc() const {
  if (steps_.empty()) return std::nullopt;
  if (positives() == 0) return 0.0;
  DoubleDouble sum;
  std::int64_t above = 0;
  for (const Step& step : steps_) {
    const auto predicted = static_cast<double>(step.true_positives + step.false_positives);
    sum = add(sum, divide(product(step.true_positives - above, step.true_positives), predicted));
    above = step.true_positives;
  }
  return divide(sum, static_cast<double>(positives())).high;
}

std::vector<CurvePoint> RankedCurve::roc_points() const {
  if (positives() == 0 || negatives() == 0) return {};
  std::vector<CurvePoint> points = {{std::numeric_limits<double>::infinity(), 0.0, 0.0}};
  for (const Step& step : steps_) {
    points.push_back(
        {step.threshold, ratio(step.false_positives, negatives()), ratio(step.true_positives, positives())});
  }
  return points;
}

std::vector<CurvePoint> RankedCurve::pr_points() const {
  if (positives() == 0) return {};
  std::vector<CurvePoint> points = {{std::numeric_limits<double>::infinity(), 0.0, 1.0}};
  for (const Step& step : steps_) {
    points.push_back({step.threshold, ratio(step.true_positives, positives()),
                      ratio(step.true_positives, step.true_positives + step.false_positives)});
  }
  return points;
}

BinaryRates RankedCurve::at(double threshold) const {
  // The last step whose samples all have at least this score.
  const auto below =
      std::partition_point(steps_.begin(), steps_.end(), [&](const Step& step) { return step.threshold >= threshold; });
  const Step step = below == steps_.begin() ? Step{} : *(below - 1);
  return {step.true_positives, step.false_positives, positives() - step.true_positives,
          negatives() - step.false_positives};
}

std::optional<double> RankedCurve::best_f1_threshold() const {
  if (positives() == 0) return std::nullopt;
  // F1 = 2 tp / (predicted + positives); two of them are compared by multiplying crosswise, without rounding.
  const Step* best = nullptr;
  const auto found = [](const Step& step) { return static_cast<std::uint64_t>(step.true_positives); };
  const auto asked = [&](const Step& step) {
    return static_cast<std::uint64_t>(step.true_positives + step.false_positives + positives());
  };
  for (const Step& step : steps_) {
    if (best == nullptr || found(step) * asked(*best) > found(*best) * asked(step)) best = &step;
  }
  return best->threshold;
}

void RankedOutcomes::add(double score, bool positive, std::int64_t sample) {
  if (!std::isfinite(score)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the score of sample {} is not finite ({})",
                            sample < 0 ? fmt::format("{} of this part", samples()) : fmt::to_string(sample), score));
  }
  outcomes_.push_back({score + 0.0, positive});  // -0.0 becomes 0.0: the two are tied, and one of them names the tie
}

void RankedOutcomes::merge(const RankedOutcomes& other) {
  const std::size_t count = other.outcomes_.size();  // the other may be this one
  outcomes_.reserve(outcomes_.size() + count);
  for (std::size_t i = 0; i < count; ++i) outcomes_.push_back(other.outcomes_[i]);
}

RankedCurve RankedOutcomes::curve() const {
  if (outcomes_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(ErrorCode::kNotSupported, fmt::format("a ranking of {} samples: at most 2^31 - 1", outcomes_.size()));
  }
  std::vector<Outcome> sorted = outcomes_;
  std::sort(sorted.begin(), sorted.end(), [](const Outcome& a, const Outcome& b) { return a.score > b.score; });
  std::vector<RankedCurve::Step> steps;
  RankedCurve::Step seen;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    (sorted[i].positive ? seen.true_positives : seen.false_positives) += 1;
    if (i + 1 < sorted.size() && sorted[i + 1].score == sorted[i].score) continue;
    seen.threshold = sorted[i].score;
    steps.push_back(seen);
  }
  return RankedCurve(std::move(steps));
}

nlohmann::ordered_json to_json(const RankedCurve& curve, double threshold) {
  const auto maybe = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  const BinaryRates rates = curve.at(threshold);
  return {{"samples", curve.positives() + curve.negatives()},
          {"positives", curve.positives()},
          {"roc_auc", maybe(curve.roc_auc())},
          {"pr_auc", maybe(curve.pr_auc())},
          {"threshold", threshold},
          {"accuracy", rates.accuracy()},
          {"precision", rates.precision()},
          {"recall", rates.recall()},
          {"f1", rates.f1()},
          {"true_positives", rates.true_positives},
          {"false_positives", rates.false_positives},
          {"false_negatives", rates.false_negatives},
          {"true_negatives", rates.true_negatives}};
}

}  // namespace convoy::eval

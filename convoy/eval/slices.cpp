#include "convoy/eval/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::eval {
namespace {

using Json = nlohmann::ordered_json;

// How many of a group's samples are hits: right predictions of all samples, or of those of class 1.
struct Hits {
  std::int64_t hits = 0;
  std::int64_t samples = 0;
  double share() const { return samples == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(samples); }
};

Hits right_of(const ConfusionMatrix& matrix) {
  Hits right{0, matrix.samples()};
  for (int i = 0; i < matrix.classes(); ++i) right.hits += matrix.count(i, i);
  return right;
}

Hits found_of(const ConfusionMatrix& matrix) { return {matrix.count(1, 1), matrix.count(1, 0) + matrix.count(1, 1)}; }

void check_column(const Outcomes& outcomes, const SliceColumn& column) {
  if (column.value_of.size() != outcomes.truth.size()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("slice column '{}' has {} samples, the evaluation {}",
                                                         column.name, column.value_of.size(), outcomes.truth.size()));
  }
  for (std::size_t i = 0; i < column.value_of.size(); ++i) {
    const std::int32_t value = column.value_of[i];
    if (value >= -1 && value < static_cast<std::int64_t>(column.values.size())) continue;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("slice column '{}': sample {} has value number {} of {}",
                                                         column.name, i, value, column.values.size()));
  }
}

// How likely each number of hits from `fewest` to `most` is, up to a common factor: 1 for the likeliest, the others by
// the ratio of neighbours in the hypergeometric distribution, so that nothing overflows.
std::vector<double> relative_chances(std::int64_t fewest, std::int64_t most, std::int64_t draws, std::int64_t all_hits,
                                     std::int64_t all) {
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  const auto up = [&](std::int64_t k) {
    return real(all_hits - k) * real(draws - k) / (real(k + 1) * real(all - all_hits - draws + k + 1));
  };
  const double likeliest = std::floor(real(draws + 1) * real(all_hits + 1) / real(all + 2));
  const std::int64_t mode = std::clamp(static_cast<std::int64_t>(likeliest), fewest, most);
  std::vector<double> chances(static_cast<std::size_t>(most - fewest + 1), 1.0);
  const auto at = [&](std::int64_t k) -> double& { return chances[static_cast<std::size_t>(k - fewest)]; };
  for (std::int64_t k = mode; k < most; ++k) at(k + 1) = at(k) * up(k);
  for (std::int64_t k = mode; k > fewest; --k) at(k - 1) = at(k) / up(k - 1);
  return chances;
}

// The samples of each value, as parts of the outcomes.
std::vector<Outcomes> divide(const Outcomes& outcomes, const SliceColumn& column) {
  Outcomes empty;
  empty.classes = outcomes.classes;
  std::vector<Outcomes> parts(column.values.size(), empty);
  for (std::size_t i = 0; i < column.value_of.size(); ++i) {
    if (column.value_of[i] < 0) continue;
    Outcomes& part = parts[static_cast<std::size_t>(column.value_of[i])];
    part.add(outcomes.truth[i], outcomes.predicted[i]);
    if (!outcomes.score.empty()) part.score.push_back(outcomes.score[i]);
  }
  return parts;
}

// Compares slices with what is outside them, and keeps what chance hardly explains.
class Comparison {
 public:
  Comparison(const ConfusionMatrix& total, const SliceOptions& options, SliceReport& report)
      : total_(total), options_(options), report_(report) {}

  void add(const SliceColumn& column, const std::string& value, const ConfusionMatrix& slice) {
    compare(column.name, value, "accuracy", right_of(slice), right_of(total_));
    if (total_.classes() == 2) compare(column.name, value, "recall", found_of(slice), found_of(total_));
  }

  void finish() {
    std::vector<SliceFinding>& all = report_.findings;
    const double bound = options_.false_alarm / static_cast<double>(std::max<std::int64_t>(1, report_.comparisons));
    all.erase(std::remove_if(all.begin(), all.end(), [&](const SliceFinding& f) { return f.p_value >= bound; }),
              all.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const SliceFinding& a, const SliceFinding& b) { return a.p_value < b.p_value; });
  }

 private:
  void compare(const std::string& column, const std::string& value, const char* metric, const Hits& slice,
               const Hits& total) {
    const Hits rest{total.hits - slice.hits, total.samples - slice.samples};
    if (slice.samples < options_.least_samples || rest.samples < options_.least_samples) return;
    ++report_.comparisons;
    report_.findings.push_back({column, value, metric, slice.share(), rest.share(), total.share(), slice.samples,
                                fisher_p_value(slice.hits, slice.samples, total.hits, total.samples)});
  }

  const ConfusionMatrix& total_;
  const SliceOptions& options_;
  SliceReport& report_;
};

SliceResult measure(const SliceColumn& column, const std::string& value, const Outcomes& part,
                    const ConfusionMatrix& confusion) {
  SliceResult result;
  result.column = column.name;
  result.value = value;
  result.samples = part.samples();
  result.accuracy = confusion.accuracy();
  result.macro_f1 = confusion.macro_f1();
  if (part.classes != 2) return result;
  result.positive = confusion.rates(1);
  if (part.score.empty()) return result;
  const RankedCurve curve = rank_by_score(part).curve();
  result.roc_auc = curve.roc_auc();
  result.pr_auc = curve.pr_auc();
  return result;
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json slice_json(const SliceResult& slice) {
  Json json = {{"column", slice.column},
               {"value", slice.value},
               {"samples", slice.samples},
               {"accuracy", slice.accuracy},
               {"macro_f1", slice.macro_f1}};
  if (!slice.positive) return json;
  json["precision"] = slice.positive->precision;
  json["recall"] = slice.positive->recall;
  json["f1"] = slice.positive->f1;
  json["positives"] = slice.positive->support;
  json["roc_auc"] = number_or_null(slice.roc_auc);
  json["pr_auc"] = number_or_null(slice.pr_auc);
  return json;
}

}  // namespace

double fisher_p_value(std::int64_t hits, std::int64_t draws, std::int64_t all_hits, std::int64_t all) {
  const std::int64_t fewest = std::max<std::int64_t>(0, draws - (all - all_hits));
  const std::int64_t most = std::min(draws, all_hits);
  if (draws < 0 || draws > all || all_hits < 0 || all_hits > all || hits < fewest || hits > most) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no table has {} hits of {} among {} hits of {}", hits, draws, all_hits, all));
  }
  const std::vector<double> chances = relative_chances(fewest, most, draws, all_hits, all);
  const auto seen = chances.begin() + (hits - fewest);
  const double whole = std::accumulate(chances.begin(), chances.end(), 0.0);
  const double lower = std::accumulate(chances.begin(), seen + 1, 0.0);
  const double upper = std::accumulate(seen, chances.end(), 0.0);
  return std::min(1.0, 2.0 * std::min(lower, upper) / whole);
}

std::string SliceFinding::text() const {
  return fmt::format(
      "{} is {:.4f} where {} is {} ({} samples) and {:.4f} elsewhere (total {:.4f}; chance gives this "
      "with probability {:.1e})",
      metric, slice, column, value, samples, rest, total, p_value);
}

SliceReport slice_report(const Outcomes& outcomes, std::span<const SliceColumn> columns, const SliceOptions& options) {
  const ConfusionMatrix total = classify(outcomes).confusion;
  for (const SliceColumn& column : columns) check_column(outcomes, column);
  SliceReport report;
  Comparison comparison(total, options, report);
  for (const SliceColumn& column : columns) {
    const std::vector<Outcomes> parts = divide(outcomes, column);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].samples() == 0) continue;
      const ConfusionMatrix confusion = classify(parts[i]).confusion;
      report.slices.push_back(measure(column, column.values[i], parts[i], confusion));
      comparison.add(column, column.values[i], confusion);
    }
  }
  comparison.finish();
  return report;
}

nlohmann::ordered_json to_json(const SliceReport& report) {
  Json json = {{"slices", Json::array()}, {"findings", Json::array()}, {"comparisons", report.comparisons}};
  for (const SliceResult& slice : report.slices) json["slices"].push_back(slice_json(slice));
  for (const SliceFinding& finding : report.findings) {
    json["findings"].push_back({{"column", finding.column},
                                {"value", finding.value},
                                {"metric", finding.metric},
                                {"slice", finding.slice},
                                {"rest", finding.rest},
                                {"total", finding.total},
                                {"samples", finding.samples},
                                {"p_value", finding.p_value},
                                {"text", finding.text()}});
  }
  return json;
}

}  // namespace convoy::eval

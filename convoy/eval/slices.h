// Evaluation by slice: the same metrics for each value of a column, so that a shift that the total hides is seen.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/eval/outcomes.h"
#include "convoy/eval/slice_column.h"

namespace convoy::eval {

/// What the samples with one value show.
struct SliceResult {
  /// The column and the value.
  std::string column, value;
  /// How many samples have it.
  std::int64_t samples = 0;
  /// The share that was predicted right, and the mean F1 of all classes; 0 without samples.
  double accuracy = 0.0, macro_f1 = 0.0;
  /// Two classes: the rates of class 1.
  std::optional<ClassRates> positive;
  /// Two classes with scores: nothing where one class is missing.
  std::optional<double> roc_auc, pr_auc;
};

/// A slice that differs from the rest by more than chance explains.
struct SliceFinding {
  /// The column and the value.
  std::string column, value;
  /// What differs: "accuracy", or for two classes "recall" (of class 1).
  std::string metric;
  /// The metric over the slice, over the samples outside it, and over all samples.
  double slice = 0.0, rest = 0.0, total = 0.0;
  /// How many samples of the slice the metric looks at (recall: those of class 1).
  std::int64_t samples = 0;
  /// How likely a difference of at least this size is when the slice is like the rest.
  double p_value = 1.0;
  /// Returns a sentence for people.
  std::string text() const;
};

/// What counts as a finding.
struct SliceOptions {
  /// A slice, and what is outside it, need at least this many samples. More: fewer, surer findings.
  std::int64_t least_samples = 30;
  /// How likely one false finding in the whole report may be: that of three standard deviations. It is divided by the
  /// number of comparisons (Bonferroni), so that many slices do not make noise a finding.
  double false_alarm = 0.0027;
};

/// The metrics of all slices, and what stands out.
struct SliceReport {
  /// In the order of columns and values; values without samples are left out.
  std::vector<SliceResult> slices;
  /// The least likely first.
  std::vector<SliceFinding> findings;
  /// How many comparisons were made.
  std::int64_t comparisons = 0;
};

/// Computes the metrics of each slice and compares its right and wrong predictions with those of all other samples by
/// Fisher's exact test (two-sided: twice the smaller tail), which holds for few samples and rare errors too.
/// Errors:     kInvalidArgument naming column and sample when a column does not fit the outcomes
/// Source:     Fisher: Statistical Methods for Research Workers, 1934, section 21.02
SliceReport slice_report(const Outcomes& outcomes, std::span<const SliceColumn> columns,
                         const SliceOptions& options = {});

/// Returns how likely a table at least as far from the expected one is, by Fisher's exact test: `hits` of `draws` in one
/// group, `all_hits` of `all` in both groups together.
/// Errors:     kInvalidArgument when no such table exists
double fisher_p_value(std::int64_t hits, std::int64_t draws, std::int64_t all_hits, std::int64_t all);

/// Returns {slices: [...], findings: [...], comparisons}. What is not defined is null.
nlohmann::ordered_json to_json(const SliceReport& report);

}  // namespace convoy::eval

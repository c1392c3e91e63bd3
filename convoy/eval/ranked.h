// Metrics of a two-class ranking: ROC AUC, average precision and rates at a threshold, from merged scores.
//
// Words: a sample is *positive* when it is of the class that is looked for; it is *predicted positive* at a threshold
// when its score is at least the threshold. Scores that are equal are *tied*: no threshold tells them apart. Ranks'
// values are never averaged: parts are merged, and everything follows from the sorted multiset of (score, class), so
// that the order of merging cannot show.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace convoy::eval {

/// What a threshold makes of a part of the data. A rate whose denominator is 0 is 0.
struct BinaryRates {
  /// Counts of the four outcomes.
  std::int64_t true_positives = 0, false_positives = 0, false_negatives = 0, true_negatives = 0;

  /// Returns the share of right predictions.
  double accuracy() const;
  /// Returns tp / (tp + fp).
  double precision() const;
  /// Returns tp / (tp + fn).
  double recall() const;
  /// Returns 2 tp / (2 tp + fp + fn).
  double f1() const;
  friend bool operator==(const BinaryRates&, const BinaryRates&) = default;
};

/// A point of a curve: ROC has x = false positive rate, y = recall; precision-recall has x = recall, y = precision.
struct CurvePoint {
  /// Samples with at least this score are predicted positive; infinite where nothing is.
  double threshold = 0.0;
  /// The point.
  double x = 0.0, y = 0.0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// What is predicted positive at each score that occurs, highest first. All metrics of a ranking follow from it.
class RankedCurve {
 public:
  /// Samples with at least the score, by class.
  struct Step {
    /// The score.
    double threshold = 0.0;
    /// How many positive (negative) samples have at least this score.
    std::int64_t true_positives = 0, false_positives = 0;
    friend bool operator==(const Step&, const Step&) = default;
  };

  /// Takes steps by falling threshold, with cumulative counts; the last step counts all samples.
  explicit RankedCurve(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// Returns the steps, highest threshold first.
  const std::vector<Step>& steps() const { return steps_; }
  /// Returns how many samples are positive.
  std::int64_t positives() const { return steps_.empty() ? 0 : steps_.back().true_positives; }
  /// Returns how many samples are negative.
  std::int64_t negatives() const { return steps_.empty() ? 0 : steps_.back().false_positives; }

  /// Returns the share of pairs (positive, negative) in which the positive has the higher score, ties counting half:
  /// (2 wins + ties) / (2 positives x negatives), counted in integers and divided once. Nothing without both classes.
  std::optional<double> roc_auc() const;
  /// Returns the average precision: the sum over thresholds of (rise of recall) x precision, not interpolated, summed
  /// in twice double's precision and rounded once. 0 when no sample is positive; nothing without samples.
  /// Source:     scikit-learn's definition of average_precision_score
  std::optional<double> pr_auc() const;
  /// Returns the ROC curve from (0, 0) to (1, 1), a point for each score; empty without both classes.
  std::vector<CurvePoint> roc_points() const;
  /// Returns the precision-recall curve from (0, 1) on, a point for each score; empty without positive samples.
  std::vector<CurvePoint> pr_points() const;
  /// Returns what predicting positive from this score on gives.
  BinaryRates at(double threshold) const;
  /// Returns the threshold with the highest F1, compared as exact fractions. Of thresholds that tie the highest is
  /// taken: the one that predicts the fewest samples positive. It is one of the scores. Nothing without positives.
  std::optional<double> best_f1_threshold() const;

 private:
  std::vector<Step> steps_;
};

/// The scores and classes of a part of the data, as a state that merges.
/// Threads:    none; each thread has its own, merged afterwards
class RankedOutcomes {
 public:
  /// Adds a sample. `sample` is its number for the message, -1 when it has none.
  /// Errors:     kInvalidArgument naming the sample when the score is NaN or infinite
  void add(double score, bool positive, std::int64_t sample = -1);
  /// Adds all samples of another part.
  void merge(const RankedOutcomes& other);
  /// Returns how many samples were added.
  std::int64_t samples() const { return static_cast<std::int64_t>(outcomes_.size()); }
  /// Sorts the samples and counts them.
  /// Errors:     kNotSupported above 2^31 - 1 samples, where pairs can no longer be counted
  /// Cost:       n log n
  RankedCurve curve() const;

 private:
  struct Outcome {
    double score;
    bool positive;
  };
  std::vector<Outcome> outcomes_;
};

/// Returns {samples, positives, roc_auc, pr_auc, threshold, accuracy, precision, recall, f1, true_positives,
/// false_positives, false_negatives, true_negatives}. What is not defined is null.
nlohmann::ordered_json to_json(const RankedCurve& curve, double threshold);

}  // namespace convoy::eval

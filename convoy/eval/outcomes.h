// What an evaluation found for each sample, in the order of samples: the source of every metric and slice.
//
// Ranks evaluate whole batches and hand their outcomes over part by part, in the order of samples. Once all parts are
// appended each rank holds the same outcomes, and everything computed from them is equal on every rank, bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "convoy/eval/classification_state.h"
#include "convoy/eval/confusion_matrix.h"
#include "convoy/eval/ranked.h"

namespace convoy::eval {

/// Outcomes of consecutive samples. The vectors are plain, so that an all-gather can carry them.
struct Outcomes {
  /// The number of classes; every truth and prediction lies in 0 to classes - 1.
  int classes = 2;
  /// Each sample's class, and the class that was predicted for it.
  std::vector<std::int32_t> truth, predicted;
  /// Two classes: how much each sample looks like class 1 (its probability, or the difference of the logits). Empty when
  /// there are no scores, otherwise as long as `truth`.
  std::vector<double> score;
  /// The loss of each evaluation batch, in order.
  std::vector<LossSum> batch_losses;

  /// Returns how many samples there are.
  std::int64_t samples() const { return static_cast<std::int64_t>(truth.size()); }
  /// Adds a sample, with a score where all have one.
  void add(std::int32_t of_truth, std::int32_t of_prediction, std::optional<double> of_score = std::nullopt);
  /// Appends the samples and batches that follow these.
  /// Errors:     kInvalidArgument when the classes differ in number, or only one of two parts has scores
  void append(const Outcomes& next);
  /// Checks lengths, classes and scores.
  /// Errors:     kInvalidArgument naming the first sample that is wrong
  void check() const;
  /// Predicts class 1 for each sample whose score is at least the threshold, in place of what was predicted.
  /// Errors:     kInvalidArgument when there are no scores
  void predict_from(double threshold);
  friend bool operator==(const Outcomes&, const Outcomes&) = default;
};

/// Counts predictions against truth and adds the losses up in the order of batches.
/// Errors:     see Outcomes::check
ClassificationState classify(const Outcomes& outcomes);

/// Returns the ranking by score, class 1 being the positive one.
/// Errors:     kInvalidArgument without scores or with another number of classes than two, or naming the sample whose
///             score is not finite
RankedOutcomes rank_by_score(const Outcomes& outcomes);

}  // namespace convoy::eval

// What a classifier's evaluation has seen so far, as states that are merged before anything is divided.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "convoy/eval/confusion_matrix.h"

namespace convoy::eval {

/// A sum of losses and what it counts. Merging adds both; only then may they be divided.
struct LossSum {
  /// The losses added up.
  double sum = 0.0;
  /// How many samples (or tokens) they belong to.
  std::int64_t count = 0;

  /// Adds another sum. Sums of doubles depend on their order: for a result that is equal on any number of ranks keep
  /// one sum for each evaluation batch and combine them all with in_batch_order.
  void merge(const LossSum& other) {
    sum += other.sum;
    count += other.count;
  }
  /// Returns the mean loss; 0 when nothing was counted.
  double mean() const { return count == 0 ? 0.0 : sum / static_cast<double>(count); }
  friend bool operator==(const LossSum&, const LossSum&) = default;
};

/// Adds up the sums of all evaluation batches, first to last, whichever rank worked through them.
LossSum in_batch_order(std::span<const LossSum> batches);

/// Everything that the evaluation of a classifier counts.
struct ClassificationState {
  /// Makes a state that has seen nothing.
  explicit ClassificationState(int classes) : confusion(classes) {}

  /// Predictions against truth.
  ConfusionMatrix confusion;
  /// The loss.
  LossSum loss;

  /// Adds what another part of the data has shown.
  /// Errors:     kInvalidArgument when the classes differ in number
  void merge(const ClassificationState& other);
  /// Returns {samples, loss, accuracy, macro_f1, classes: [{class, precision, recall, f1, support}], confusion: [[]]}.
  nlohmann::ordered_json to_json() const;
};

}  // namespace convoy::eval

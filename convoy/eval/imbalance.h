// Warnings in words about rare classes: what a high accuracy hides, and parts that nearly lack a class.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/eval/confusion_matrix.h"

namespace convoy::eval {

/// When a warning is given.
struct ImbalanceOptions {
  /// A class is rare when it has less than this share of what an even division over the classes would give it.
  double rare = 0.5;
  /// Recall of a rare class below this is low.
  double low_recall = 0.5;
  /// Recall that lies at least this much below the accuracy is hidden by it.
  double gap = 0.2;
  /// A part nearly lacks a class when it has fewer samples of it.
  std::int64_t least_samples = 10;
};

/// Returns a sentence for each rare class whose recall is low while the accuracy is high, for example "accuracy is 0.97
/// while recall of class yes is 0.12 (30 of 1000 samples)", and one when always answering with the commonest class would
/// be as accurate. A name that is missing or empty is the class's number.
std::vector<std::string> imbalance_warnings(const ConfusionMatrix& matrix, std::span<const std::string> names = {},
                                            const ImbalanceOptions& options = {});

/// Returns a sentence for each class that a part of the data lacks or nearly lacks, for example "part validation has only
/// 2 samples of class yes". `counts` holds the samples of each class.
std::vector<std::string> part_warnings(const std::string& part, std::span<const std::int64_t> counts,
                                       std::span<const std::string> names = {}, const ImbalanceOptions& options = {});

}  // namespace convoy::eval

// Evaluation: fixed batches by sample index, dealt whole to ranks, gathered into outcomes that every rank has.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/eval/classification_state.h"
#include "convoy/eval/outcomes.h"
#include "convoy/eval/ranked.h"
#include "convoy/eval/slices.h"
#include "convoy/params/model.h"
#include "convoy/train/task.h"

namespace convoy::train {

/// How a part is evaluated.
struct EvaluationOptions {
  /// Samples in one batch; part of the result, since kernels round by batch size.
  std::int64_t batch = 500;
  /// The model's type.
  torch::ScalarType type = torch::kFloat32;
  /// The columns that results are cut by.
  std::vector<std::string> slices;
};

/// What an evaluation found; equal on every rank and for any number of ranks.
struct Evaluation {
  /// Makes an evaluation of so many classes.
  explicit Evaluation(int classes) : state(classes) { outcomes.classes = classes; }

  /// Every sample's truth, prediction and, for two classes, the probability of the positive one.
  eval::Outcomes outcomes;
  /// Loss, confusion matrix and what follows from them.
  eval::ClassificationState state;
  /// Two classes: the ranking by score.
  std::optional<eval::RankedCurve> curve;
  /// The results by slice.
  eval::SliceReport slices;
  /// What is worth a warning: rare classes that a high accuracy hides.
  std::vector<std::string> warnings;

  /// Returns everything as JSON; for two classes with the rates at a threshold.
  nlohmann::ordered_json to_json(double threshold) const;
};

/// Evaluates a classifier on a part of the data, with the model's present buffers.
/// Collective: all ranks
/// Errors:     kFailed on all ranks naming the first sample whose output is not finite; kInvalidArgument when the model
///             does not give one logit for each class of the data
Evaluation evaluate(params::Model& model, const records::DataPart& part, const EvaluationOptions& options,
                    comm::Group& group);

/// Writes one line for each sample of a part: its key in the data, truth, prediction and, for two classes, the score.
/// Errors:     kIo
void write_predictions(Files& files, const std::string& path, const records::DataPart& part,
                       const eval::Outcomes& outcomes);

}  // namespace convoy::train

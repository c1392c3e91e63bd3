// Evaluation: fixed batches by sample index, dealt whole to ranks, merged into one exact result.
#pragma once

#include "convoy/comm/group.h"
#include "convoy/eval/classification_state.h"
#include "convoy/params/model.h"
#include "convoy/train/image_task.h"

namespace convoy::train {

/// Evaluates a classifier on a part of the data, with the model's present buffers; returns the same on every rank and
/// for any number of ranks.
/// Collective: all ranks
eval::ClassificationState evaluate(params::Model& model, const ImageTask& task, const EvaluationPart& part,
                                   std::int64_t batch, torch::ScalarType type, comm::Group& group);

}  // namespace convoy::train

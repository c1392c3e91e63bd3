// The sizes of a model's parameters, and of the buckets in which its gradients would be exchanged.
#pragma once

#include "convoy/train/run.h"

namespace convoy::train {

/// The file that write_model_sizes leaves in the run directory.
inline constexpr const char* kModelSizesFile = "model_sizes.json";

/// Builds the recipe's model and writes `parameters` (each its `name` and `bytes`) and `bucket_bytes`. Buckets are those
/// of gradients that arrive from the last parameter to the first; the order of a run is measured in its first step.
/// Errors:     those of Task and zoo::Registry::make
void write_model_sizes(const RunRequest& request, const RunServices& services);

}  // namespace convoy::train

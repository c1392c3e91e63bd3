// Sizes of a recipe's model, for benchmarks: the worker program builds the model, since the command has no libtorch.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// Returns the bytes of the recipe's gradient buckets and of its parameters, ascending, each once.
/// Blocking:   until one `convoy-rank` has built the model
/// Errors:     kNotSupported without the worker program; kInvalidArgument with what it says of data or model
std::vector<std::int64_t> model_sizes(const spec::Recipe& recipe);

}  // namespace convoy::cli

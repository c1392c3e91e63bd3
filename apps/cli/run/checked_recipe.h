// The recipe that a job is started with: read, and checked against the job before any rank starts.
#pragma once

#include <string>
#include <vector>

#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// Reads a recipe with its overrides and checks that so many ranks can carry its replicas, that this command
/// can start them over its transport, and that its data are there.
/// Errors:     kInvalidArgument with one line naming what is wrong
spec::Recipe read_checked_recipe(const std::string& path, const std::vector<std::string>& overrides, int ranks);

}  // namespace convoy::cli

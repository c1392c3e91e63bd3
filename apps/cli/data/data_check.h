// A cheap look at the data before any rank starts.
#pragma once

#include "convoy/base/files.h"
#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// Checks that the folder of the recipe's data and its files are there; their contents are read by the ranks.
/// Errors:     kInvalidArgument naming the folder and what it lacks
void check_data(Files& files, const spec::DataRecipe& data);

}  // namespace convoy::cli

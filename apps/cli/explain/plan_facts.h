// What a plan may use beside the recipe: the data, and an earlier run.
#pragma once

#include <string>

#include "convoy/base/files.h"
#include "convoy/spec/document/plan_document.h"
#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// Returns what an earlier run measured, from its summary.json.
/// Errors:     kInvalidArgument when the directory has no run, or one of another model; kCorrupt for a damaged summary
spec::PlanBaseline read_baseline(const std::string& directory, const spec::Recipe& recipe);

/// Returns how many parameters the model has by an earlier run; 0 when it did not say.
std::int64_t parameters_of(const spec::PlanBaseline& baseline, const spec::Recipe& recipe);

/// Looks at the data and fills in the sizes of the parts. Data that cannot be read are no error here: a plan is made
/// before they are there. Returns what kept it from it, or "".
std::string look_at_data(const spec::Recipe& recipe, Files& files, spec::PlanFacts& facts);

}  // namespace convoy::cli

// The recipe that a job is started with: read, and checked against the job before any rank starts.
#pragma once

#include <string>
#include <vector>

#include "convoy/plan/bucket_size.h"
#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// A recipe and what was chosen where it leaves something open.
struct CheckedRecipe {
  /// With the size of buckets filled in.
  spec::Recipe recipe;
  /// That size, and where it comes from.
  plan::BucketChoice buckets;
};

/// Returns the size of buckets of a recipe's run on this machine.
plan::BucketChoice chosen_buckets(const spec::Recipe& recipe, int ranks);

/// Reads a recipe with its overrides and checks that so many ranks can carry its replicas, that this command
/// can start them over its transport, and that its data are there.
/// Errors:     kInvalidArgument with one line naming what is wrong
CheckedRecipe read_checked_recipe(const std::string& path, const std::vector<std::string>& overrides, int ranks);

}  // namespace convoy::cli

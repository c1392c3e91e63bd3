// What the recipe tests share: the message of a refused recipe, and random recipes that are valid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/spec/recipe.h"

namespace convoy::spec {

/// Returns the message that a recipe is refused with, or "accepted"; any other code than kInvalidArgument is named.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {});

/// Returns a recipe that says every key.
std::string whole_recipe();

/// Returns a recipe of so many replicas that share a global batch in `accumulation` micro-batches each.
Recipe recipe_of(std::int64_t replicas, std::int64_t global_batch, std::int64_t accumulation = 1);

/// Returns a recipe with random values in every key that meets all demands; inside a rapidcheck property only.
Recipe random_recipe();

}  // namespace convoy::spec

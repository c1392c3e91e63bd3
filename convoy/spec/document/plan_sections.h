// The sections of a training plan, and the two kinds of lines that they are made of.
#pragma once

#include <string>

#include "convoy/spec/document/plan_document.h"
#include "convoy/spec/recipe.h"

namespace convoy::spec {

/// Returns a line on what a key declares: open while the text is empty.
PlanLine declared(std::string what, std::string text, std::string key);

/// Returns a line on what follows from the recipe, or on how the program works.
PlanLine stated(std::string what, std::string text);

/// Returns a number with its noun, for example "1 step" or "3 steps".
std::string counted(std::int64_t number, const char* noun);

/// Returns what is learnt from what: source, files, moment of prediction, label.
PlanSection task_section(const Recipe& recipe);

/// Returns what a prediction looks at, column by column for a table, with the reason of what is left out.
PlanSection feature_section(const Recipe& recipe);

/// Returns how features become numbers, and what of that is fitted where.
PlanSection encoding_section(const Recipe& recipe);

/// Returns how parts are divided, and how large they are.
PlanSection split_section(const Recipe& recipe, const PlanFacts& facts);

/// Returns in which order samples come, and how they are weighted.
PlanSection sampling_section(const Recipe& recipe, const PlanFacts& facts);

}  // namespace convoy::spec

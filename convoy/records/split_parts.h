// What making a split and recording it share.
#pragma once

#include <array>

#include "convoy/records/split.h"

namespace convoy::records {

/// The words for the kinds of split, in the order of SplitKind.
inline constexpr std::array<const char*, 4> kSplitKinds = {"official", "random", "group", "time"};

/// Returns the parts with their training part: what validation and test leave, or a choice of it.
Split complete_split(const SplitOptions& options, Split parts);

}  // namespace convoy::records

// The page of `convoy profile`: profile.json as tables and sentences.
#pragma once

#include <string>

#include "apps/cli/run/summary.h"

namespace convoy::cli {

/// Returns what a person reads.
/// Errors:     kCorrupt when the profile lacks something
std::string profile_page(const Json& profile);

}  // namespace convoy::cli

// Profile: a recipe in one process, measured before it is divided: time by part and layer, memory by category, the
// largest local batch, and what stands in the way.
#pragma once

#include <cstdint>

#include "convoy/train/run.h"

namespace convoy::train {

/// The file that run_profile leaves in the run directory.
inline constexpr const char* kProfileFile = "profile.json";

/// What a profile measures.
struct ProfileRequest {
  /// Steps that are left out, for caches and first allocations.
  std::int64_t warmup = 20;
  /// Steps whose times count.
  std::int64_t steps = 100;
  /// Steps after these in which operators are watched; watching costs time, so that they do not count above.
  std::int64_t layer_steps = 20;
  /// The memory that one process may take; 0 asks the system.
  std::int64_t memory_limit_bytes = 0;
};

/// Trains a few steps of the recipe, with all its replicas in this process, and writes profile.json into the run directory.
/// A recipe with fewer steps than are asked for is profiled over those that it has.
/// Errors:     kInvalidArgument when the group has more than one rank; as run()
void run_profile(const RunRequest& request, const ProfileRequest& profile, const RunServices& services);

}  // namespace convoy::train

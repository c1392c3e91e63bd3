// A run: builds everything that a recipe names and owns the step loop.
#pragma once

#include <memory>
#include <string>

#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/spec/recipe.h"
#include "convoy/train/event_pipe.h"
#include "convoy/zoo/registry.h"

namespace convoy::train {

/// What a rank is asked to run.
struct RunRequest {
  /// The resolved recipe.
  spec::Recipe recipe;
  /// The run directory.
  std::string directory;
  /// Whether to go on from the newest checkpoint.
  bool resume = false;
  /// Whether only step times are wanted: no evaluation, checkpoint or ledger.
  bool timing_only = false;
};

/// What a run works with.
/// Ownership:  borrows everything
struct RunServices {
  /// All ranks.
  comm::Group& group;
  /// Where model names are looked up.
  const zoo::Registry& models;
  /// Where the run directory lies.
  Files& files;
  /// Where the launcher listens.
  EventPipe& events;
};

/// Trains as the recipe says and leaves the run directory behind; rank 0 writes the files that are shared.
/// Collective: all ranks of the group, with equal requests
/// Errors:     kInvalidArgument for a recipe that does not fit data, model, ranks or checkpoint; kFailed on all ranks in
///             the same step for a loss or gradient that is not finite; what group, files and loader throw
void run(const RunRequest& request, const RunServices& services);

}  // namespace convoy::train

// Where each rank's time went, brought together at the end of a run.
#pragma once

#include <vector>

#include "convoy/comm/group.h"
#include "convoy/observe/step_timer.h"

namespace convoy::train {

/// Returns the summaries of all ranks, by rank.
/// Collective: all ranks of the group, each with its own
std::vector<observe::StepSummary> gather_summaries(comm::Group& group, const observe::StepSummary& own);

}  // namespace convoy::train

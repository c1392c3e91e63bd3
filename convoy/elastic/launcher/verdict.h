// Who made a job fail, and how that is said.
#pragma once

#include "convoy/elastic/launcher/launcher.h"

namespace convoy::elastic {

/// Returns the rank that made the job fail, -1 when none failed: first one that a signal ended which we did not send;
/// else the first that reported an error of its own (a code other than Aborted); else the first that ended badly.
int find_culprit(const std::vector<RankOutcome>& ranks);

/// Fills in culprit, status and message from how the ranks ended.
void judge(LaunchResult& result);

}  // namespace convoy::elastic

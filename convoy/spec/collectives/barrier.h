// Barrier: nobody leaves before everybody entered.
#pragma once

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Barrier by dissemination. Its messages are empty.
/// Cost:       ceil(log2 W) rounds of one empty message a rank
/// Source:     Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, IJPP 1988
Schedule dissemination_barrier(int ranks);

}  // namespace convoy::spec

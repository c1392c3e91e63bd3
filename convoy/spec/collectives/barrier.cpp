// Builds the schedule of a barrier.
#include "convoy/spec/collectives/barrier.h"

#include <algorithm>

#include "convoy/spec/schedule/builder.h"

namespace convoy::spec {

Schedule dissemination_barrier(int ranks) {
  ScheduleBuilder builder("barrier", "dissemination", ranks, 0);
  Schedule& sizes = builder.sizes();
  std::fill(sizes.inputs.begin(), sizes.inputs.end(), 0);
  for (int k = 0; (1 << k) < ranks; ++k) {
    for (int rank = 0; rank < ranks; ++rank) builder.signal(k, rank, wrap(rank + (1 << k), ranks));
  }
  return builder.finish();
}

}  // namespace convoy::spec

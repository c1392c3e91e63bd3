// Clock offsets: what to add to each rank's clock to have that of rank 0.
//
// Ranks of one host share a clock that counts from the start of the machine, so their offset is 0. Of each other host one
// rank answers rank 0: what its clock shows on the answer lies between question and answer on rank 0's, and the shortest
// of several rounds tells most.
#pragma once

#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/group.h"

namespace convoy::comm {

/// How a rank's clock stands to that of rank 0.
struct ClockOffset {
  /// What to add to the rank's time to have rank 0's.
  Duration offset{};
  /// By how much this may be wrong either way: half the shortest round.
  Duration uncertainty{};
};

/// How clocks are compared.
struct ClockOffsetOptions {
  /// Questions to each host; more find a shorter round.
  int rounds = 20;
  /// Asks every rank, those on rank 0's host too.
  bool every_rank = false;
};

/// Returns the offset of each rank, the same on all ranks; `clock` is this rank's.
/// Collective: all ranks of the group, with equal options
/// Blocking:   until all hosts have answered
/// Errors:     kInvalidArgument for less than one round; what the group throws
/// Cost:       two messages a round and host
std::vector<ClockOffset> measure_clock_offsets(Group& group, const Clock& clock = system_clock(),
                                               const ClockOffsetOptions& options = {});

/// Returns this rank's offset alone.
/// Collective: all ranks of the group
ClockOffset own_clock_offset(Group& group);

}  // namespace convoy::comm

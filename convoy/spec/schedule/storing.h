// Storing: which messages the sender may write straight into the receiver's output as soon as it has computed them.
//
// Where ranks can write each other's memory, a sum that goes to others need not be read by them: whoever computes it
// stores it everywhere at once, while it is in the nearest cache. That is right only where nobody else still reads or
// writes the place; the schedule of all ranks says where that is so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// A reduction whose result may be stored into a peer's output, in place of the payload of a later message.
struct DirectStore {
  /// The reduction's round.
  std::size_t round = 0;
  /// Its place in the round.
  std::size_t operation = 0;
  /// The rank into whose output it goes.
  int peer = -1;
  /// The first element there. It is as long as the reduction's target.
  std::int64_t offset = 0;
  /// The round of the send that it takes the place of.
  std::size_t send_round = 0;
  /// That send's place in its round.
  std::size_t send_operation = 0;
};

/// The stores of each rank, in the order of their reductions.
using DirectStores = std::vector<std::vector<DirectStore>>;

/// Returns every send of a reduction's final result that may be stored when the reduction is done, although the receiver
/// may not have come to that round: nobody reads or writes the place between the begin of the operation and the
/// receive, but the reduction itself, which reads an element before it writes it. It holds where inputs and output are
/// apart, and where an input is the output's memory, element for element.
/// Cost:       operations of the schedule, times those that touch the same elements
DirectStores find_direct_stores(const Schedule& schedule);

}  // namespace convoy::spec

// Topology: the ranks of a group tell each other in the store which host they are on, and rank 0 what messages cost.
#pragma once

#include <string>
#include <utility>

#include "convoy/comm/group.h"
#include "convoy/comm/meeting.h"

namespace convoy::comm {

/// Returns what two ranks of one host have in common: the booted kernel, its view of processes, and network interfaces.
/// Two network namespaces of one machine are joined by a link, as two hosts are, and count as two.
std::string host_identity();

/// One exchange. All ranks go through settle, meet once more (as they do when their transport is made), then leave.
class TopologyExchange {
 public:
  /// Of the group that meets there.
  explicit TopologyExchange(Meeting meeting) : meeting_(std::move(meeting)) {}
  /// Fills hosts in where none are named, and takes rank 0's machine over.
  /// Collective: all ranks
  /// Errors:     kTimeout naming the ranks that did not come
  void settle(Store& store, SelectionOptions& selection) const;
  /// Takes this rank's text away, so that the group's name can be used anew.
  void leave(Store& store) const noexcept;

 private:
  const Meeting meeting_;
};

}  // namespace convoy::comm

// A session: what a process needs to take part in a job, set up in one call.
#pragma once

#include <memory>

#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/job.h"
#include "convoy/comm/store.h"

namespace convoy::train {

/// How a process takes part.
struct SessionOptions {
  /// Compute threads; part of the result, since kernels split work by thread.
  int threads = 1;
  /// The group of all ranks.
  comm::GroupOptions group;
  /// How the ranks move bytes.
  comm::TransportChoice transport;
  /// How long the start may wait for the other ranks.
  Duration start_limit = std::chrono::seconds(60);
};

/// A process's part in a job; a process that no launcher started is a job of one rank.
/// Ownership:  owns store and group
class Session {
 public:
  /// Puts tensors into the shared arena, sets the compute threads, makes TorchScript run every execution alike, and
  /// joins the group of all ranks.
  /// Collective: all ranks
  /// Errors:     what comm::join_group throws
  explicit Session(const SessionOptions& options = {});

  /// Returns this rank's number.
  int rank() const { return job_.rank; }
  /// Returns the number of ranks.
  int ranks() const { return job_.world_size; }
  /// Returns the group of all ranks.
  comm::Group& group() { return *group_; }

 private:
  comm::JobEnvironment job_;
  std::unique_ptr<comm::Store> store_;
  std::unique_ptr<comm::Group> group_;
};

}  // namespace convoy::train

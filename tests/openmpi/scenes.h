// The scenes that ranks of an mpirun job play. Each throws what goes wrong.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "convoy/base/error.h"
#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/job.h"

namespace convoy::comm {

/// A rank and where it meets the others.
struct Scene {
  JobEnvironment job;
  /// The job's store.
  Store& store;

  /// Joins a group of all ranks.
  std::unique_ptr<Group> join(std::uint64_t generation, Duration timeout) const {
    GroupOptions options;
    options.generation = generation;
    options.timeout = timeout;
    return join_group(job, store, options, {"openmpi", {}});
  }
};

/// Throws unless something holds.
inline void expect(bool holds, const std::string& claim) {
  if (!holds) throw Error(ErrorCode::kFailed, claim);
}

/// Every algorithm of the registry, and MPI's own, against what collectives are by definition.
void play_collectives(const Scene& scene);
/// Types, reductions, buffers in pieces, what MPI cannot do, and disagreements.
void play_details(const Scene& scene);
/// Groups one after the other in one process: left in order, and given up.
void play_groups(const Scene& scene);
/// Rank 1 is killed between two operations, or in the middle of one of MPI's. Survivors print what they report.
void play_kill(const Scene& scene, bool in_native);
/// Rank 1 stops without a word.
void play_silence(const Scene& scene);

}  // namespace convoy::comm

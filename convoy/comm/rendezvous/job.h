// A job: the ranks that a launcher started, how they learn of each other, and how they become a group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/store.h"

namespace convoy::comm {

/// What a launcher tells a rank through its environment.
struct JobEnvironment {
  /// RANK, WORLD_SIZE, LOCAL_RANK (RANK when unset); or what Open MPI or Slurm's srun say in their own words.
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  /// Where the store listens: CONVOY_STORE, or "tcp://MASTER_ADDR:MASTER_PORT"; empty for a job of one rank.
  std::string store_address;
  /// What a client must know to be let in: CONVOY_JOB_TOKEN. Where the store is at a loopback address and no launcher
  /// of Convoy's serves it, an absent token is made of the user and the port, which keeps other jobs out and nobody
  /// else.
  std::string token;
  /// Whether this rank serves the store itself: rank 0 of a job whose launcher gave MASTER_ADDR and no CONVOY_STORE.
  bool serves_store = false;
};

/// How the ranks of a group move bytes.
struct TransportChoice {
  /// "shared_memory" (ranks of one host), "gloo" (TCP) or "openmpi" (ranks that mpirun started).
  std::string name = "shared_memory";
  /// Of gloo: interfaces, addresses or host names of this host. Empty: the one that leads to the store.
  std::vector<std::string> interfaces;
};

/// Reads the environment; without a rank and a number of ranks it is a job of one rank.
/// Errors:     kInvalidArgument naming the variable
JobEnvironment read_job_environment();

/// Connects to the job's store, or serves it.
/// A job of one rank without an address gets a store of its own. A store that is served here stays until all others
/// have left it, for at most 30 s (2 s when it is destroyed by an error).
/// Errors:     kTimeout or kPeerLost naming the address; kIo naming a port that is taken; kInvalidArgument for a form
///             that is not known or a wrong token
std::unique_ptr<Store> connect_store(const JobEnvironment& job, Duration limit);

/// Forms a group of all ranks of the job (a job of one rank needs no store and no transport). Without a recorder_folder
/// the environment's CONVOY_RECORDER is taken. Where options.selection names no hosts they are found: over gloo and
/// openmpi two ranks share a host when they share the booted kernel, its view of processes, and network interfaces. The
/// machine of options.selection is rank 0's on all ranks.
/// Collective: all ranks, each with the same options
/// Errors:     kTimeout naming the ranks that did not come; kInvalidArgument naming two hosts that cannot share memory
std::unique_ptr<Group> join_group(const JobEnvironment& job, Store& store, const GroupOptions& options,
                                  const TransportChoice& transport = {});

}  // namespace convoy::comm

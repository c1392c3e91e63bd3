// A job: the ranks that a launcher started, how they learn of each other, and how they become a group.
#pragma once

#include <memory>
#include <string>

#include "convoy/comm/group.h"
#include "convoy/comm/store.h"

namespace convoy::comm {

/// What a launcher tells a rank through its environment.
struct JobEnvironment {
  /// RANK, WORLD_SIZE, LOCAL_RANK (RANK when unset).
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  /// CONVOY_STORE: where the store listens, for example "unix:@name"; empty for a job of one rank.
  std::string store_address;
  /// CONVOY_JOB_TOKEN: what a client must know to be let in.
  std::string token;
};

/// Reads the environment; without RANK and WORLD_SIZE it is a job of one rank.
/// Errors:     kInvalidArgument naming the variable
JobEnvironment read_job_environment();

/// Connects to the job's store.
/// A job of one rank without an address gets a store of its own.
/// Errors:     kTimeout or kPeerLost naming the address; kInvalidArgument for a form that is not known or a wrong token
std::unique_ptr<Store> connect_store(const JobEnvironment& job, Duration limit);

/// Forms a group of all ranks of the job over shared memory (a job of one rank needs no store).
/// Collective: all ranks, each with the same options
/// Errors:     kTimeout naming the ranks that did not come
std::unique_ptr<Group> join_group(const JobEnvironment& job, Store& store, const GroupOptions& options);

}  // namespace convoy::comm

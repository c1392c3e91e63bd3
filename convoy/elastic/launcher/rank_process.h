// Starts one rank as a process of its own that cannot outlive its launcher.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "convoy/elastic/launcher/owned_fd.h"
#include "convoy/elastic/launcher/rank_environment.h"

namespace convoy::elastic {

/// The descriptor on which every rank finds its pipe for events (CONVOY_EVENTS_FD).
inline constexpr int kEventsFd = 3;

/// The descriptor on which every rank finds the job's state file on this host (comm::kStateFileVariable).
inline constexpr int kStateFd = 4;

/// What to start.
struct RankCommand {
  /// The path of the program.
  std::string program;
  /// Its arguments, without the program's name.
  std::vector<std::string> arguments;
  /// Its whole environment.
  Environment environment;
  /// A file that it gets as kStateFd; -1 for none.
  int state_file = -1;
};

/// A started rank and our ends of its pipes, which never block.
/// Ownership:  the pipes close with it; ending and reaping the process is its user's duty
struct RankProcess {
  /// The process, which leads a process group of the same number.
  pid_t pid = -1;
  /// Readable once the process ended; none where the kernel has no such descriptors.
  OwnedFd pidfd;
  /// What the process writes to standard output.
  OwnedFd output;
  /// What it writes to standard error.
  OwnedFd errors;
  /// What it writes to kEventsFd.
  OwnedFd events;
};

/// Returns the path of a program as a shell would find it.
/// Errors:     kInvalidArgument naming the program
std::string find_program(const std::string& name);

/// Starts a rank: in its own process group, with an empty standard input, no further descriptor of ours, no signal
/// blocked, and killed by the kernel when the calling thread ends.
/// Blocking:   returns when the program runs
/// Errors:     kInvalidArgument when the program cannot be run, kIo when the system has no more processes or
///             descriptors
RankProcess start_rank_process(const RankCommand& command);

}  // namespace convoy::elastic

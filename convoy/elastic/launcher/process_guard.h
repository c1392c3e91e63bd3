// A small process that outlives a killed launcher just long enough to kill what ranks started.
//
// The kernel kills a rank when its launcher dies (PR_SET_PDEATHSIG), but not what the rank started: a program under a
// shell wrapper, for example. The guard reads a socket that only the launcher holds open; when that
// ends, it kills the process groups that it was told of.
#pragma once

#include <sys/types.h>

#include "convoy/elastic/launcher/owned_fd.h"

namespace convoy::elastic {

/// Owns the guard of one job; the guard ends with it, and kills nobody then.
/// Threads:    one; made before the job's other threads and ranks
class ProcessGuard {
 public:
  /// Starts a guard for at most `groups` process groups.
  /// Errors:     kIo when the system has no more processes or descriptors
  explicit ProcessGuard(int groups);
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;
  /// Has a process group killed if this process dies.
  void watch(pid_t group) { tell(group); }
  /// Forgets a group, whose number may soon be another's.
  void forget(pid_t group) { tell(-group); }

 private:
  void tell(pid_t message);

  OwnedFd lifeline_;
  pid_t guard_ = -1;
};

}  // namespace convoy::elastic

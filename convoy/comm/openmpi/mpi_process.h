// MPI of this process: there is one at most, it can be started once, and it outlives all links.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "convoy/base/mutex.h"

namespace convoy::comm {

/// What all links of a process share.
/// Threads:    any; whoever calls MPI holds the lock
class MpiProcess {
 public:
  /// Returns the process's own; MPI is not started yet.
  static MpiProcess& here();

  /// The lock under which MPI is called.
  Mutex mutex;
  /// Starts MPI unless it runs. At the end of the program it is ended too, if no link was left in disorder.
  void start() CONVOY_REQUIRES(mutex);
  /// Says that something may be on its way for good: MPI must not be ended any more, because its end waits for peers.
  void leave_open() CONVOY_REQUIRES(mutex) { in_order_ = false; }
  /// Says that a collective was given up whose memory its owner may free: MPI must not be called any more.
  void give_up() CONVOY_REQUIRES(mutex) { given_up_ = true; }
  /// Returns whether it was.
  bool given_up() const CONVOY_REQUIRES(mutex) { return given_up_; }
  /// Keeps memory that MPI may still use; `done` asks MPI whether it has let go of it.
  void keep(std::unique_ptr<std::byte[]> memory, std::function<bool()> done) CONVOY_REQUIRES(mutex);
  /// Frees what MPI has let go of.
  void reap() CONVOY_REQUIRES(mutex);
  /// Ends MPI at the end of the program.
  void finish(int status);

 private:
  struct Kept {
    std::unique_ptr<std::byte[]> memory;
    std::function<bool()> done;
  };

  bool started_ CONVOY_GUARDED_BY(mutex) = false;
  bool in_order_ CONVOY_GUARDED_BY(mutex) = true;
  bool given_up_ CONVOY_GUARDED_BY(mutex) = false;
  std::vector<Kept> kept_ CONVOY_GUARDED_BY(mutex);
};

}  // namespace convoy::comm

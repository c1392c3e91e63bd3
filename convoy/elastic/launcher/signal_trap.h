// Turns the signals that ask a program to stop into something that can be waited for together with ranks.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "convoy/elastic/launcher/owned_fd.h"

namespace convoy::elastic {

/// While it lives, SIGINT, SIGTERM and SIGHUP wait in a descriptor instead of ending the process, and a closed pipe is
/// an error instead of SIGPIPE. A signal that the process was started to ignore (nohup) stays ignored.
/// Threads:    made and used by the main thread before it starts others, which then inherit the blocked signals
/// Errors:     kIo when the system refuses
class SignalTrap {
 public:
  SignalTrap();
  ~SignalTrap();
  SignalTrap(const SignalTrap&) = delete;
  SignalTrap& operator=(const SignalTrap&) = delete;
  /// Returns a descriptor that is readable while a signal waits.
  int fd() const { return fd_.get(); }
  /// Takes the next waiting signal, if there is one.
  std::optional<int> take();
  /// Returns the first signal that came, taken or not; 0 when none did.
  int first();

 private:
  OwnedFd fd_;
  sigset_t previous_mask_;
  struct sigaction previous_pipe_;
  int first_ = 0;
  std::optional<int> waiting_;
};

/// Returns a signal's number and name, for example "signal 9 (SIGKILL)".
std::string describe_signal(int signal);

}  // namespace convoy::elastic

// SigpipeGuard: blocks the signal, and takes one that came meanwhile away before it unblocks.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "convoy/comm/gloo/link.h"

namespace convoy::comm {
namespace {

sigset_t only_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

SigpipeGuard::SigpipeGuard() {
  const sigset_t set = only_sigpipe();
  sigset_t before;
  blocked_here_ = ::pthread_sigmask(SIG_BLOCK, &set, &before) == 0 && sigismember(&before, SIGPIPE) == 0;
}

SigpipeGuard::~SigpipeGuard() {
  if (!blocked_here_) return;
  const sigset_t set = only_sigpipe();
  const timespec now{0, 0};
  ::sigtimedwait(&set, nullptr, &now);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace convoy::comm

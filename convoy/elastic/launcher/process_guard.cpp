// The guard: a fork of the launcher that does nothing but read, remember and kill.
#include "convoy/elastic/launcher/process_guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::elastic {
namespace {

// Closes every descriptor but one: whoever waits for the end of the launcher's output must not wait for the guard.
void close_all_but(int kept) {
  if (kept > 0) ::close_range(0, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(static_cast<unsigned>(kept) + 1, ~0U, 0);
}

// Runs in the forked process: only calls that are safe after a fork of a process with threads.
[[noreturn]] void guard(int lifeline, int launchers_end, std::vector<pid_t>& groups) {
  ::close(launchers_end);  // or the line would never end
  ::setsid();              // no terminal's signals, no place in the launcher's group
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  close_all_but(lifeline);
  ::prctl(PR_SET_NAME, "convoy-guard");
  pid_t message = 0;
  while (true) {
    const ssize_t got = ::read(lifeline, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof message)) break;
    const pid_t wanted = message > 0 ? 0 : -message;  // a free place, or the one to free
    const auto place = std::find(groups.begin(), groups.end(), wanted);
    if (place != groups.end()) *place = message > 0 ? message : 0;
  }
  for (const pid_t group : groups) {
    if (group > 0) ::kill(-group, SIGKILL);
  }
  ::_exit(0);
}

}  // namespace

ProcessGuard::ProcessGuard(int groups) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("cannot start a job: no socket: {}", std::strerror(errno)));
  }
  const OwnedFd read_end(ends[0]);
  lifeline_ = OwnedFd(ends[1]);
  std::vector<pid_t> places(static_cast<std::size_t>(groups), 0);
  guard_ = ::fork();
  if (guard_ == 0) guard(read_end.get(), lifeline_.get(), places);
  if (guard_ < 0) throw Error(ErrorCode::kIo, fmt::format("cannot start a job: {}", std::strerror(errno)));
}

ProcessGuard::~ProcessGuard() {
  ::kill(guard_, SIGKILL);  // its job is over: whoever owns the guard has ended the groups
  while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ProcessGuard::tell(pid_t message) {
  // A guard that somebody killed is done without.
  [[maybe_unused]] const ssize_t told = ::send(lifeline_.get(), &message, sizeof message, MSG_NOSIGNAL);
}

}  // namespace convoy::elastic

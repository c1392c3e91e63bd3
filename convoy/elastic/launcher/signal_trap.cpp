// Stop signals through a signalfd.
#include "convoy/elastic/launcher/signal_trap.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::elastic {

SignalTrap::SignalTrap() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    // A blocked signal is kept even when it is ignored, so one that should stay ignored must not be blocked.
    if (action.sa_handler != SIG_IGN) sigaddset(&stops, signal);
  }
  fd_ = OwnedFd(::signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.valid()) throw Error(ErrorCode::kIo, fmt::format("cannot watch for signals: {}", std::strerror(errno)));
  pthread_sigmask(SIG_BLOCK, &stops, &previous_mask_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous_pipe_);
}

SignalTrap::~SignalTrap() {
  while (take()) {  // one that still waited would end the process as soon as it is let through
  }
  sigaction(SIGPIPE, &previous_pipe_, nullptr);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

std::optional<int> SignalTrap::take() {
  if (waiting_) {
    const std::optional<int> signal = waiting_;
    waiting_.reset();
    return signal;
  }
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  const int signal = static_cast<int>(info.ssi_signo);
  if (first_ == 0) first_ = signal;
  return signal;
}

int SignalTrap::first() {
  if (first_ == 0) waiting_ = take();
  return first_;
}

std::string describe_signal(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("signal {} (SIG{})", signal, name);
}

}  // namespace convoy::elastic

// A job: its store, its ranks, its end.
#include "convoy/elastic/launcher/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "convoy/base/error.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/elastic/launcher/supervisor.h"

namespace convoy::elastic {
namespace {

constexpr int kFirstFreeFd = 16;

// Whoever ignores SIGCHLD never learns how its children end.
void expect_children() {
  struct sigaction action {};
  ::sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler != SIG_IGN) return;
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, nullptr);
}

// An empty file without a name, above the descriptors that ranks use.
OwnedFd make_state_file() {
  const OwnedFd low(::memfd_create("convoy-state", MFD_CLOEXEC));
  if (!low.valid()) throw Error(ErrorCode::kIo, fmt::format("cannot make the job's state file: {}", std::strerror(errno)));
  return OwnedFd(::fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstFreeFd));
}

}  // namespace

Environment job_environment(const LaunchOptions& options) {
  Environment environment = current_environment();
  set_threads(environment, options.threads);
  set_blas_kernel(environment, openblas_coretype(detect_cpu()));
  for (const auto& [name, value] : options.extra_environment) environment[name] = value;
  return environment;
}

LaunchResult launch(const LaunchOptions& options) {
  if (options.ranks < 1) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a job needs at least 1 rank, not {}", options.ranks));
  }
  expect_children();
  RankCommand command;
  command.program = find_program(options.program);
  command.arguments = options.arguments;
  const Environment environment = job_environment(options);
  // What ranks have in common on this host; held here too, so that it outlives each of them.
  const OwnedFd state_file = make_state_file();
  command.state_file = state_file.get();
  const comm::StoreServer store;
  Supervisor supervisor(options);
  for (int rank = 0; rank < options.ranks; ++rank) {
    command.environment = environment;
    set_identity(command.environment, {rank, options.ranks, store.address(), store.token()});
    supervisor.start(command);
  }
  return supervisor.run();
}

}  // namespace convoy::elastic

// A job: its store, its ranks, its end.
#include "convoy/elastic/launcher/launcher.h"

#include <fmt/format.h>
#include <signal.h>

#include "convoy/base/error.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/elastic/launcher/supervisor.h"

namespace convoy::elastic {
namespace {

// Whoever ignores SIGCHLD never learns how its children end.
void expect_children() {
  struct sigaction action {};
  ::sigaction(SIGCHLD, nullptr, &action);
  if (action.sa_handler != SIG_IGN) return;
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &action, nullptr);
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

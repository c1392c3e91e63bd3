// `convoy launch`: any program, supervised.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "apps/cli/requests.h"
#include "convoy/elastic/launcher/launcher.h"
#include "convoy/elastic/launcher/signal_trap.h"

namespace convoy::cli {

int launch_command(const LaunchRequest& request) {
  elastic::SignalTrap signals;
  elastic::LaunchOptions options;
  options.program = request.command.front();
  options.arguments.assign(request.command.begin() + 1, request.command.end());
  options.ranks = request.ranks;
  options.pass_through = true;
  options.output_fd = request.json ? STDERR_FILENO : STDOUT_FILENO;
  options.signals = &signals;
  const elastic::LaunchResult result = elastic::launch(options);
  // The ranks' lines were passed on already: the last ones are not shown again.
  if (!result.ok()) fmt::print(stderr, "convoy: {}\n", result.message);
  if (request.json) fmt::print("{}\n", elastic::to_json(result));
  return result.status;
}

}  // namespace convoy::cli

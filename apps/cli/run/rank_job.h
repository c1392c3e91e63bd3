// One job of `convoy-rank` processes on a prepared run directory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convoy/elastic/launcher/launcher.h"
#include "convoy/elastic/launcher/signal_trap.h"

namespace convoy::cli {

/// What to run.
struct RankJob {
  /// How many ranks.
  int ranks = 1;
  /// Compute threads of each rank, as the recipe says.
  int threads = 1;
  /// The run directory, with recipe.toml and log/ in it.
  std::string directory;
  /// Whether to go on from the directory's newest checkpoint.
  bool resume = false;
  /// Whether only step times are wanted: no evaluation and no checkpoint.
  bool timing_only = false;
  /// Further arguments of `convoy-rank`.
  std::vector<std::string> arguments{};
};

/// Returns the path of `convoy-rank`, which lies beside this command.
/// Errors:     kNotSupported when it is not there
std::string find_rank_program();

/// Returns how the job's ranks are to be launched.
elastic::LaunchOptions rank_launch_options(const RankJob& job);

/// Returns one line on a failed job, followed by the last lines of the rank that failed if it reported no error.
std::string describe_failure(const elastic::LaunchResult& result);

}  // namespace convoy::cli

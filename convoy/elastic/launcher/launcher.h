// Starts the ranks of a job on this host, watches over them, and leaves none behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/elastic/launcher/rank_environment.h"
#include "convoy/elastic/launcher/rank_event.h"

namespace convoy::elastic {

class SignalTrap;

/// What to start and how to watch over it.
struct LaunchOptions {
  /// The program of every rank: a path, or a name to find in PATH.
  std::string program;
  /// Its arguments, the same for every rank.
  std::vector<std::string> arguments;
  /// How many ranks.
  int ranks = 1;
  /// Variables that every rank gets on top of this process's environment.
  Environment extra_environment;
  /// Compute threads of each rank.
  ThreadPolicy threads;
  /// A folder in which each rank's output is appended to rank-N.log; it must exist. "" for none.
  std::string log_folder;
  /// Whether ranks' lines are passed on, each with "[rank N] " before it.
  bool pass_through = false;
  /// Where lines of standard output are passed on; those of standard error go to standard error.
  int output_fd = 1;
  /// After a rank failed, the others may end by themselves for this long. Longer: more of them say what they saw;
  /// shorter: the failure is reported sooner.
  Duration settle = std::chrono::milliseconds(1000);
  /// After SIGTERM, ranks may tidy up for this long before SIGKILL.
  Duration terminate = std::chrono::milliseconds(1500);
  /// Called for each event of a rank, on the thread of launch().
  std::function<void(int rank, const RankEvent& event)> on_event;
  /// Called when a rank runs.
  std::function<void(int rank, pid_t pid)> on_start;
  /// Asked for signals that end the job; null when signals are not the launcher's business.
  SignalTrap* signals = nullptr;
};

/// An error that a rank reported.
struct RankError {
  /// The name of its code, for example "Aborted".
  std::string code;
  /// Its message.
  std::string message;
  /// Orders errors of different ranks by arrival.
  std::uint64_t order = 0;
};

/// How one rank ended.
struct RankOutcome {
  /// Its process.
  pid_t pid = -1;
  /// Its exit status, unless a signal ended it.
  std::optional<int> status;
  /// The signal that ended it.
  std::optional<int> signal;
  /// Whether it ended because the launcher asked it to.
  bool stopped = false;
  /// The first error that it reported.
  std::optional<RankError> error;
  /// The last step that it reported; -1 for none.
  std::int64_t last_step = -1;
  /// The last lines that it printed.
  std::vector<std::string> last_lines;
  /// Orders the ends of ranks.
  std::uint64_t order = 0;

  /// Returns whether the rank ended with status 0.
  bool ok() const { return status == 0; }
};

/// How a job ended.
struct LaunchResult {
  /// All ranks, by number.
  std::vector<RankOutcome> ranks;
  /// The rank that failed first and made the others fail; -1 when none did.
  int culprit = -1;
  /// The signal that asked the launcher to stop; 0 for none.
  int interrupted_by = 0;
  /// The exit status for the command: 0 when every rank ended with 0; 128 + signal when interrupted; 3 when a signal
  /// ended the culprit; its status when that is 1 to 4; else 1.
  int status = 0;
  /// One line on what went wrong; "" when nothing did.
  std::string message;
  /// How long the job took.
  Duration elapsed{0};

  /// Returns whether every rank ended with 0 and nobody interrupted them.
  bool ok() const { return status == 0; }
};

/// Returns the environment that all ranks of a job get, before what tells them apart: this process's own, compute
/// threads, the BLAS kernel that fits the processor, and the extra variables last.
Environment job_environment(const LaunchOptions& options);

/// Runs a job to its end: serves its store, starts its ranks, reads their events and output, and when one fails gives
/// the others time to end, then stops them. No process of a rank's process group is left when it returns.
/// Blocking:   returns when all ranks ended; after a failure or a signal within settle + terminate and a moment
/// Threads:    ranks end with the thread that calls it; one job at a time per SignalTrap
/// Errors:     kInvalidArgument when the program cannot be run or ranks < 1, kIo when the system refuses; how ranks end
///             is never an exception
LaunchResult launch(const LaunchOptions& options);

/// Returns the result as one JSON object: ok, status, message, culprit, elapsed_s and ranks.
std::string to_json(const LaunchResult& result);

}  // namespace convoy::elastic

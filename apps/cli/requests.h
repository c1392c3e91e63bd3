// What a user asked for, after the command line was understood.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace convoy::cli {

/// `convoy run`.
struct RunRequest {
  /// The recipe's path.
  std::string recipe;
  /// How many ranks.
  int ranks = 0;
  /// "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// The run directory; "" makes a new one under runs/.
  std::string out;
  /// Whether to go on in a run directory that has a checkpoint.
  bool resume = false;
  /// Whether to time the one-rank baselines afterwards.
  bool baselines = false;
  /// How many steps each timed run of the baselines has.
  int baseline_steps = 40;
  /// Whether the result is one JSON object instead of a table.
  bool json = false;
  /// Whether progress and notes are left out.
  bool quiet = false;
  /// The whole command line, for the record.
  std::vector<std::string> command_line;
};

/// `convoy launch`.
struct LaunchRequest {
  /// How many ranks.
  int ranks = 0;
  /// Whether the result is one JSON object; ranks' output then goes to standard error.
  bool json = false;
  /// The program and its arguments.
  std::vector<std::string> command;
};

/// `convoy ledger`.
struct LedgerRequest {
  /// The run directory.
  std::string run_directory;
  /// Whether the result is one JSON object.
  bool json = false;
};

/// Any of them.
using Request = std::variant<RunRequest, LaunchRequest, LedgerRequest>;

/// Trains a recipe on several ranks; returns the exit status.
int run_command(const RunRequest& request);

/// Starts and supervises ranks of any program; returns the exit status.
int launch_command(const LaunchRequest& request);

/// Proves a run's use of samples; returns the exit status.
int ledger_command(const LedgerRequest& request);

}  // namespace convoy::cli

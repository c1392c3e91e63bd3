// What a user asked for, after the command line was understood.
#pragma once

#include <cstdint>
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

/// `convoy trace`.
struct TraceRequest {
  /// The run directory.
  std::string run_directory;
  /// Whether the result is one JSON object.
  bool json = false;
};

/// `convoy explain`.
struct ExplainRequest {
  /// The recipe's path.
  std::string recipe;
  /// How many ranks; 0 when not chosen.
  int ranks = 0;
  /// "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// Whether the training plan is written, in place of one step.
  bool document = false;
  /// Where the plan is written: "" for plan.md, "-" for standard output.
  std::string out;
  /// Where the step's picture is written, an SVG file; "" for nowhere.
  std::string picture;
  /// The directory of an earlier run; "" for none.
  std::string baseline;
  /// How many parameters the model has; 0 when not known.
  std::int64_t parameters = 0;
  /// Whether the result is one JSON object.
  bool json = false;
};

/// `convoy verify`.
struct VerifyRequest {
  /// The recipe's path.
  std::string recipe;
  /// How many ranks.
  int ranks = 0;
  /// How many updates.
  int steps = 5;
  /// "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// Where both sides' records are kept; "" keeps them only when they differ.
  std::string out;
  /// Whether the result is one JSON object instead of a table.
  bool json = false;
};

/// `convoy profile`.
struct ProfileRequest {
  /// The recipe's path.
  std::string recipe;
  /// Steps that are left out, and steps that count.
  int warmup = 20, steps = 100;
  /// The memory that a process may take, as the user writes it; "" asks the system.
  std::string memory_limit;
  /// "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// The new directory that keeps profile.json, recipe and log; "" keeps nothing.
  std::string out;
  /// Whether the result is one JSON object instead of tables.
  bool json = false;
};

/// `convoy data`.
struct DataRequest {
  /// What to do: "check", "synth" or "split".
  std::string action;
  /// check, split: the recipe's path.
  std::string recipe;
  /// check, split: "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// check: whether findings make exit status 1.
  bool strict = false;
  /// synth: "idx", "cifar10" or "bank".
  std::string kind;
  /// synth: samples of the training and of the test files, and the seed.
  std::int64_t samples = 5000, test_samples = 1000, seed = 1;
  /// synth: the folder; split: the record's file.
  std::string out;
  /// Whether the result is one JSON object.
  bool json = false;
};

/// `convoy bench`.
struct BenchRequest {
  /// What to measure: "p2p" or "collective"; "" with a recorder's file.
  std::string action;
  /// A flight recorder's file, or the folder of these, to show in place of a measurement.
  std::string recorder;
  /// How many ranks.
  int ranks = 2;
  /// How ranks reach each other: "shared_memory", "gloo", "in_process", "openmpi"; "" for the recipe's or the first.
  std::string transport;
  /// The element type; where buffers lie, "shared" or "private".
  std::string dtype = "float32", buffers = "shared";
  /// Sizes as the user writes them: from, to, or a list; "" for the usual ones.
  std::string min, max, sizes;
  /// A recipe whose bucket size is measured; "" for none.
  std::string recipe;
  /// "table.key=value", each replacing a key of the recipe.
  std::vector<std::string> overrides;
  /// collective: the operation, and algorithms by name ("all" for all that fit); none means the group's own choice.
  std::string op = "all_reduce";
  std::vector<std::string> algorithms;
  /// collective: the host of each rank, and the most bytes of a message, as the user writes them.
  std::string hosts, chunk;
  /// collective: whether other libraries are measured.
  bool with_peers = false;
  /// collective: which; "" for those that are there.
  std::string peers;
  /// collective: whether the schedule, or what a group chooses by bytes, is shown in place of a measurement.
  bool explain = false, table = false;
  /// Whether buffers rotate through more memory than the cache holds.
  bool cold = false;
  /// Measurements of each size; 0 for as many as fit it.
  int repeats = 0;
  /// The longest wait of an operation and of everything, in seconds.
  double timeout_s = 60, limit_s = 600;
  /// Where the calibration is kept; "" for its usual place.
  std::string save;
  /// Whether the calibration is left alone.
  bool no_save = false;
  /// Whether a plot is shown, too; whether the result is one JSON object.
  bool plot = false, json = false;
};

/// Any of them.
using Request = std::variant<BenchRequest, DataRequest, ExplainRequest, ProfileRequest, RunRequest, VerifyRequest,
                             LaunchRequest, LedgerRequest, TraceRequest>;

/// Trains a recipe on several ranks; returns the exit status.
int run_command(const RunRequest& request);

/// Measures messages and collectives, or shows a schedule; returns the exit status.
int bench_command(const BenchRequest& request);

/// Compares updates of several ranks with those of one process; returns the exit status.
int verify_command(const VerifyRequest& request);

/// Measures a recipe in one process; returns the exit status.
int profile_command(const ProfileRequest& request);

/// Starts and supervises ranks of any program; returns the exit status.
int launch_command(const LaunchRequest& request);

/// Checks, makes or divides data; returns the exit status.
int data_command(const DataRequest& request);

/// Tells a recipe's training step, or writes its training plan; returns the exit status.
int explain_command(const ExplainRequest& request);

/// Proves a run's use of samples; returns the exit status.
int ledger_command(const LedgerRequest& request);

/// Tells what a run's trace says; returns the exit status.
int trace_command(const TraceRequest& request);

}  // namespace convoy::cli

// The check of a ledger: proves that each sample was used once per epoch, or lists what was repeated or left out.
//
// Words: the *lineage* is the newest generation, its parent, and so on: what led to the final parameters. A generation
// of the lineage contributes the steps from the one it started at to the one its child goes on from. What it committed
// beyond that, and everything in a generation off the lineage, is *redone* work: it left no trace in the parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/files.h"

namespace convoy::records {

/// What a check found.
struct LedgerReport {
  /// How many generations have a file.
  int generations = 0;
  /// The generations of the lineage, oldest first.
  std::vector<int> lineage;
  /// Whether the newest generation lacks an end line: it still runs, or was killed. Not wrong by itself.
  bool open = false;
  /// The first step that could be checked: 0 unless the run goes on from another directory's checkpoint.
  std::int64_t first_step = 0;
  /// One past the last committed step along the lineage.
  std::int64_t end_step = 0;
  /// Epochs that were checked from their first step to their last.
  std::int64_t epochs = 0;
  /// Samples that were consumed along the lineage, repeated ones each time.
  std::int64_t samples = 0;
  /// Uses of a sample beyond the first in the same epoch.
  std::int64_t repeated = 0;
  /// Samples that a committed step owed and none of the same epoch used.
  std::int64_t missing = 0;
  /// Steps of redone work, in each generation that did them.
  std::int64_t redone_steps = 0;
  /// Samples of redone work.
  std::int64_t redone_samples = 0;
  /// Everything that is wrong, one line each, naming generation, rank, step, replica and sample where it can. Of many
  /// of a kind the first are listed and the others counted.
  std::vector<std::string> problems;
  /// What should be known and is not wrong, for example a line that was cut off by a kill.
  std::vector<std::string> notes;

  /// Returns whether everything is proved.
  bool ok() const { return problems.empty() && repeated == 0 && missing == 0; }
};

/// Checks the ledger of a run directory. What is proved, for the steps [first_step, end_step) of the lineage: each
/// replica's part of each step is there once; in each epoch no sample is used twice, and none is left out of those that
/// the epoch's committed steps owe (of a whole epoch: all, or all but the dropped rest); each part holds the samples
/// that the sample plan puts there; no line was changed, added or removed.
/// Errors:     kInvalidArgument when the directory has no ledger; kIo. What is wrong with a ledger is in the report
/// Cost:       reads all lines into memory, 8 bytes for each sample consumed
/// See:        docs/ledger.md for what cannot be found
LedgerReport check_ledger(Files& files, const std::string& run_dir);

/// Returns the report as one JSON object.
std::string to_json(const LedgerReport& report);

}  // namespace convoy::records

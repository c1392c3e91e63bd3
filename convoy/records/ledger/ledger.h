// The ledger: what each committed step really consumed, written by each rank as it goes.
//
// Words: a *generation* is one stretch of a run between a start (or resume) and its end or death; it *inherits* the
// committed steps of its *parent* up to a step. Each rank of a generation writes one file of JSON lines,
// RUN/ledger/g0001-rank-0000.jsonl: a header, a line for each replica of each committed step, and an end line. Each
// line carries a hash of the line before it and of itself: the *chain*, by which a lost, doubled or edited line is
// found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/sample_plan.h"

namespace convoy::records {

/// Where a generation goes on from. The default is a fresh run.
struct LedgerParent {
  /// The generation, or 0 when there is none in this run directory.
  int generation = 0;
  /// How many committed steps are inherited: 0 for a fresh run. Positive with generation 0: the run goes on from a
  /// checkpoint of another directory, and its earlier steps cannot be checked here.
  std::int64_t step = 0;
  friend bool operator==(const LedgerParent&, const LedgerParent&) = default;
};

/// The first line of a ledger file: everything that is needed to check the others.
struct LedgerHeader {
  /// The generation, counted from 1; the same on all ranks: see next_generation.
  int generation = 1;
  /// The rank that writes the file.
  int rank = 0;
  /// The ranks of the generation.
  int ranks = 1;
  /// What decides which samples each step should consume; its micro-batches leave no trace in a ledger.
  spec::SamplePlanOptions plan;
  /// Where the generation goes on from.
  LedgerParent parent;
  /// The replicas of each rank; empty: dealt out evenly.
  std::vector<spec::ReplicaRange> owners{};
};

/// Appends a rank's part of the ledger.
/// Threads:    one caller at a time
/// Errors:     kIo when the disk refuses; the writer is then broken, and every later call says so
class LedgerWriter {
 public:
  /// Starts RUN_DIR/ledger/gG-rank-R.jsonl with its header, on the disk when this returns.
  /// Errors:     kInvalidArgument when the file is there already, or a number of the header makes no sense
  LedgerWriter(Files& files, const std::string& run_dir, const LedgerHeader& header);

  /// Notes what one replica consumed in a step that is committed. Steps come in order, a step's replicas ascending; a
  /// replica without samples is noted too.
  void append(std::int64_t step, int replica, std::span<const std::int64_t> samples);
  /// Writes what was noted since the last commit, in one piece. Called once a step, right after its commit point and
  /// before the next step begins: so the files of a killed generation differ by one step at most.
  void commit();
  /// Brings what was committed to the disk. Called before a checkpoint that counts the steps as done.
  void sync();
  /// Commits, writes the end line and syncs; nothing may follow. `steps` counts all committed steps of the run, those
  /// that were inherited too.
  void finish(std::int64_t steps);

  /// Returns the file's path.
  const std::string& path() const { return path_; }

 private:
  void add_line(const std::string& body);
  template <typename Change>
  void change(Change change);

  Files& files_;
  const LedgerHeader header_;
  std::int64_t steps_per_epoch_ = 1;
  std::string path_;
  std::string chain_;    // the hash of the last line
  std::string pending_;  // lines that were not committed yet
  bool broken_ = false;
  bool finished_ = false;
};

/// Returns the number for a new generation: one more than any that has a file. All ranks of a generation must use the
/// same, so one rank asks, before any of them writes, and tells the others.
int next_generation(Files& files, const std::string& run_dir);

}  // namespace convoy::records

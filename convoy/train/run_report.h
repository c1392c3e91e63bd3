// The run report: gathers what a run measures, and writes metrics.jsonl, evaluation.jsonl, memory.json and summary.json.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/observe/metrics_log.h"
#include "convoy/observe/slow_ranks.h"
#include "convoy/observe/step_timer.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::train {

/// What one step is known by.
struct StepRow {
  std::int64_t step = 0;
  /// The epoch that it lies in.
  std::int64_t epoch = 0;
  /// The mean loss over the samples that counted.
  double loss = 0.0;
  /// The learning rate.
  double rate = 0.0;
  /// The norm of the mean gradient, before clipping.
  double gradient_norm = 0.0;
  /// How many samples counted.
  std::int64_t samples = 0;
  /// Where its time went.
  observe::StepTimes times;
};

/// What the whole run is known by, beside its steps.
struct RunFacts {
  std::int64_t steps = 0;
  /// Ranks of this process's job.
  int ranks = 1;
  /// Logical replicas.
  int replicas = 1;
  /// The replicas of each rank.
  std::vector<spec::ReplicaRange> owners;
  /// What one micro-batch took on each rank when shares were measured; empty when they were not.
  std::vector<double> micro_batch_ms;
  /// The generation of this process, and the step that it went on from; 0 for a fresh run.
  int generation = 1;
  /// The step that it went on from; 0 for a fresh run.
  std::int64_t resumed_at = 0;
  /// See parallel::DataParallel::digest.
  std::string parameters_digest;
  /// Time before the first step.
  Duration setup{};
  /// Time in steps.
  Duration training{};
  /// Time in evaluation, outside of steps.
  Duration evaluation{};
  /// Time in saving, outside of steps.
  Duration checkpoint{};
  /// The steps that this process trained, and the samples in them.
  std::int64_t trained_steps = 0;
  std::int64_t trained_samples = 0;
  /// Whether the run ended by its target.
  bool reached_target = false;
  /// Where each rank's time went, by rank.
  std::vector<observe::StepSummary> by_rank;
  /// What the trace says (observe::summary_json); null without one.
  nlohmann::ordered_json trace;
};

/// Gathers and writes. Only rank 0 has one.
/// Threads:    one caller at a time
class RunReport {
 public:
  /// Ownership:  borrows the files
  RunReport(Files& files, std::string directory, const spec::Recipe& recipe);

  /// Adds a step.
  void add_step(const StepRow& row);
  /// Adds each rank's own work in a step, see parallel::StepResult.
  void add_own_work(std::span<const double> own_work_ms);
  /// Returns one line for each rank that is slow by its own work.
  std::vector<std::string> slow_rank_warnings() const;
  /// Adds an evaluation of a part ("validation", "test") after so many steps; the last test is the run's quality.
  void add_evaluation(const std::string& part, std::int64_t step, std::int64_t epoch,
                      const nlohmann::ordered_json& found);
  /// Adds how many samples of each class an epoch draws, as the part "training" of the evaluations.
  void add_class_counts(std::int64_t epoch, const std::vector<std::string>& names,
                        const std::vector<std::int64_t>& counts);
  /// Returns the samples per second over the last steps.
  double recent_samples_per_s() const;
  /// Writes summary.json and memory.json, with the memory of this process (observe::process_memory); `ledger` is the check's result as JSON, if there was one.
  void finish(const RunFacts& facts, const std::optional<nlohmann::ordered_json>& ledger);

 private:
  Files& files_;
  const std::string directory_;
  const spec::Recipe recipe_;
  observe::MetricsLog metrics_;
  observe::MetricsLog evaluations_;
  std::optional<observe::SlowRanks> own_work_;
  std::map<std::string, nlohmann::ordered_json> quality_;
  double recent_ = 0.0;
};

}  // namespace convoy::train

// The sample plan: which sample goes where, as a pure function of (seed, epoch, step, replica).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace convoy::spec {

/// What decides the plan; the number of ranks does not.
struct SamplePlanOptions {
  /// Samples in the training part, numbered 0 to samples - 1.
  std::int64_t samples = 0;
  /// Samples in one step over all replicas.
  std::int64_t global_batch = 1;
  /// Logical replicas that share the global batch.
  int replicas = 1;
  /// Micro-batches of each replica in one step.
  int accumulation = 1;
  /// Whether the short last batch of an epoch is left out.
  bool drop_last = false;
  /// Seeds the order.
  std::uint64_t seed = 1;
};

/// Says for each step which samples each replica works through.
/// Threads:    any; the order of the latest epochs is cached behind a lock
class SamplePlan {
 public:
  /// Errors:     kInvalidArgument when a number is below 1, or no step would be left
  explicit SamplePlan(const SamplePlanOptions& options);
  ~SamplePlan();

  /// Returns the options.
  const SamplePlanOptions& options() const { return options_; }
  /// Returns the steps of one epoch.
  std::int64_t steps_per_epoch() const;
  /// Returns the epoch that a step, counted from 0 over the whole run, lies in.
  std::int64_t epoch_of(std::int64_t step) const { return step / steps_per_epoch(); }
  /// Returns the samples of a step in order.
  std::vector<std::int64_t> step_samples(std::int64_t step) const;
  /// Returns the samples of one replica in a step: a contiguous part, as even as they divide, maybe empty.
  std::vector<std::int64_t> replica_samples(std::int64_t step, int replica) const;
  /// Returns a replica's samples cut into micro-batches, as even as they divide; each may be empty.
  std::vector<std::vector<std::int64_t>> micro_batches(std::int64_t step, int replica) const;
  /// Returns how many samples steps [0, step) hold.
  std::int64_t samples_before(std::int64_t step) const;

 private:
  struct Cache;
  std::shared_ptr<const std::vector<std::int64_t>> order(std::int64_t epoch) const;

  SamplePlanOptions options_;
  std::unique_ptr<Cache> cache_;
};

/// A range of evaluation batches [begin, end) by number.
struct BatchRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Returns how many fixed batches of `batch` samples `samples` samples are cut into; the last may be short.
std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch);

/// Returns the evaluation batches of one rank: whole batches, no sample twice, none left out.
/// Errors:     kInvalidArgument when there is no such rank
BatchRange evaluation_share(std::int64_t batches, int ranks, int rank);

}  // namespace convoy::spec

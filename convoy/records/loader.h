// The loader: prepares a rank's batches ahead of the step loop on a thread of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/mutex.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/records/balance.h"
#include "convoy/records/batch.h"
#include "convoy/spec/replica_tree.h"
#include "convoy/spec/sample_plan.h"

namespace convoy::records {

/// The batches of one replica in one step.
struct ReplicaBatches {
  /// The replica.
  int replica = 0;
  /// Its micro-batches in order; each may be empty.
  std::vector<Batch> micro_batches;
};

/// Everything that a rank works through in one step.
struct StepBatch {
  /// The step, counted from 0 over the whole run.
  std::int64_t step = 0;
  /// The epoch that the step lies in.
  std::int64_t epoch = 0;
  /// The rank's replicas in ascending order.
  std::vector<ReplicaBatches> replicas;
  /// How long the loader's thread worked on it.
  Duration prepare{0};
  /// When it was done.
  TimePoint prepared{};
  /// How long next() waited for it: input that was not hidden behind compute.
  Duration waited{0};
  /// Counts its buffers as MemoryCategory::kBatch.
  observe::CountedMemory memory{};
};

/// What a loader prepares.
struct LoaderOptions {
  /// The replicas of this rank.
  spec::ReplicaRange replicas;
  /// The first step: the number of committed steps when the run goes on from a checkpoint.
  std::int64_t first_step = 0;
  /// One past the last step.
  std::int64_t end_step = 0;
  /// How many steps are prepared ahead of the one in use: more evens out slow steps, each costs one step's buffers.
  std::int64_t prefetch = 3;
  /// The weight of each class, which becomes that of its samples; empty leaves all at 1.
  std::vector<float> class_weights;
  /// Which sample a number of the sample plan takes; without it, the one of that number.
  std::shared_ptr<const DrawMap> draws;
};

/// Hands out the steps of a run in order, prepared ahead.
/// Ownership:  borrows dataset, training list and plan while it lives; owns prefetch + 1 steps' buffers,
///             which it uses again and again
/// Threads:    one caller at a time; one thread of its own, which ends when the destructor asks it to
class Loader {
 public:
  /// Starts to prepare.
  /// Errors:     kInvalidArgument when the list does not fit the dataset or the plan, the replicas are not the plan's,
  ///             the range of steps runs backwards, or the class weights are not one for each class
  Loader(const BatchSource& training, const spec::SamplePlan& plan, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Returns whether all steps were handed out.
  bool done() const { return next_step_ >= options_.end_step; }

  /// Returns the next step.
  /// Blocking:   until it is prepared; gives up after `limit`
  /// Ownership:  valid until the following call, which takes the buffers back; the caller may change what is in them
  /// Errors:     kTimeout naming the step; kInvalidArgument after the last step; what the thread failed with, each time
  StepBatch& next(Duration limit);

 private:
  void work(const std::stop_token& stop);
  std::unique_ptr<StepBatch> take_free(const std::stop_token& stop);
  bool prepare(std::int64_t step, const std::stop_token& stop, StepBatch& batch) const;
  bool prepare(std::span<const std::int64_t> ids, std::int64_t epoch, const std::stop_token& stop, Batch& batch) const;

  const BatchSource training_;
  const spec::SamplePlan& plan_;
  const LoaderOptions options_;

  // Touched by the caller's thread only.
  std::int64_t next_step_;
  std::unique_ptr<StepBatch> in_use_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<StepBatch>> free_ CONVOY_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StepBatch>> ready_ CONVOY_GUARDED_BY(mutex_);  // in order, at most prefetch
  std::exception_ptr failure_ CONVOY_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: starts when all else is there, and ends first
};

}  // namespace convoy::records

// Data parallel: logical replicas share each global batch; any number of ranks carries them with the same result, bit for
// bit.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/group.h"
#include "convoy/parallel/data/gradient_exchange.h"
#include "convoy/parallel/data/replica_buffers.h"
#include "convoy/parallel/data/replica_passes.h"
#include "convoy/params/flat_space.h"
#include "convoy/params/gradient_hooks.h"
#include "convoy/params/model.h"
#include "convoy/params/optimizer.h"
#include "convoy/spec/stateful.h"

namespace convoy::parallel {

/// What happens when a replica that has samples leaves out a parameter that asks for a gradient: kAllow counts it as
/// zero for that replica, kRefuse fails the step.
enum class UnusedParameters { kAllow, kRefuse };

/// Returns what a recipe's word says.
/// Errors:     kInvalidArgument for an unknown word
UnusedParameters to_unused_parameters(const std::string& word);

/// How replicas share the work.
struct DataParallelOptions {
  /// Logical replicas; at least as many as ranks. More replicas: more ways to deal them out, smaller batches each.
  int replicas = 1;
  /// The replicas of each rank, in order of ranks: at least one each, equal on all ranks. Empty deals them out evenly;
  /// never changes results.
  std::vector<spec::ReplicaRange> owners;
  /// Gradients are exchanged in buckets of about this many bytes; never changes results.
  std::int64_t bucket_bytes = 4 << 20;
  /// Whether buckets are exchanged while backward goes on; never changes results.
  bool overlap = true;
  /// How buffers of the replicas become one for evaluation.
  BufferMerge buffer_merge = BufferMerge::kMean;
  /// What happens to parameters that a replica does not use.
  UnusedParameters unused = UnusedParameters::kAllow;
  /// Seeds random layers.
  std::uint64_t seed = 1;
  /// Whether the ranks of a host have the parameters once, in memory that they share, and each updates a share of them;
  /// never changes results. Then params::Optimizer is the only one to change parameters, and what else a program does to
  /// them it does on one rank of each host.
  bool divide_update = false;
};

/// What one step found; equal on all ranks apart from the times.
struct StepResult {
  /// The mean loss over what counted, and how many samples (or tokens) counted.
  double loss = 0.0;
  std::int64_t count = 0;
  /// The norm of the mean gradient over all parameters.
  double gradient_norm = 0.0;
  /// What an optimizer updates by.
  params::GradientSums gradient;
  /// This rank's time in forward and backward passes, and from its last backward to the whole gradient: of that, waiting
  /// for the slowest rank's backward.
  Duration forward{};
  Duration backward{};
  /// From its last backward to the whole gradient.
  Duration exposed{};
  /// Of that, waiting for the slowest rank.
  Duration wait_slowest{};
  /// This rank's passes in order of time.
  std::vector<PassTimes> passes;
  /// When this rank had launched everything.
  TimePoint wait_begin;
  /// When it had the whole gradient.
  TimePoint wait_end;
  /// The own work of each rank in milliseconds, equal on all ranks: input, forward and backward, without waiting for
  /// another rank. Scaled to an even share of the replicas, so that a rank that was dealt more of them is not slow for it.
  std::vector<double> own_work_ms;
};

/// Trains a model on logical replicas dealt out over the ranks of a group.
/// Collective: all methods but replicas, space and state; all ranks, same order
/// Threads:    one caller at a time
/// See:        examples/own_module.cpp
class DataParallel final : public spec::Stateful {
 public:
  /// Moves the model's parameters into the flat space and gives every rank the parameters and buffers of rank 0.
  /// Ownership:  borrows model and group while it lives
  /// Errors:     kInvalidArgument when there are more ranks than replicas, or owners do not cover the replicas in order
  ///             (names the rank); kDesync when ranks have different models or owners
  DataParallel(params::Model& model, comm::Group& group, const DataParallelOptions& options);

  /// Returns the replicas that this rank carries.
  spec::ReplicaRange replicas() const { return range_; }
  /// Returns the replicas of each rank.
  const std::vector<spec::ReplicaRange>& owners() const { return layout_.owners; }
  /// Returns the parameters.
  params::FlatSpace& space() { return space_; }

  /// Runs forward and backward over this rank's replicas and sums the gradients over all ranks. Parameters do not
  /// change. `batches` has the micro-batches of each replica of this rank; an undefined input is an empty micro-batch.
  /// `input` is how long this rank took to get them, part of its own work.
  /// Errors:     kFailed on all ranks in the same step when a loss or gradient is not finite (names replica, rank and
  ///             parameter), when nothing counted, or when a parameter is unused and that is refused (names each with
  ///             its replicas and ranks); kInvalidArgument when a parameter no longer lies in the space (see equalise)
  StepResult step(std::int64_t step, std::span<const std::vector<params::Batch>> batches, Duration input = {});

  /// Gives every rank and replica the parameters and buffers of rank 0's module, as the constructor does: for after
  /// rank 0 alone has loaded them. What torch::load put elsewhere is moved back into the space.
  void equalise();

  /// Says what to add to this process's clock to have that of rank 0, for ranks on hosts with clocks of their own.
  void set_clock_offset(Duration offset) { clock_offset_ = offset; }

  /// Puts the merged buffers into the model, for evaluation or export.
  void load_merged_buffers() { buffers_.load_merged(group_); }

  /// Returns the xxh3-128 digest of all parameters and of the buffers of all replicas in canonical order: equal digests
  /// mean equal bits, whatever the number of ranks.
  std::string digest();

  /// Lists "parameters/<name>" and "replica.<r>/<buffer>".
  std::vector<spec::StateEntry> state() override;

  /// Returns the memory of the newest gradient and who updates what: what params::Optimizer::settle needs after a failure.
  params::GradientSums sums() const;
  /// Returns the times of the last step's buckets.
  const std::vector<BucketTimes>& bucket_times() const { return exchange_.times(); }

 private:
  struct Status;
  void note_uses(std::span<const std::vector<params::Batch>> batches, Status& status);
  std::size_t block_count() const;
  double exchange_norm(double count);
  double divided_norm(std::span<double> blocks, double count);
  void check_unused(std::int64_t step, const Status& status);
  [[noreturn]] void fail_gradient(std::int64_t step);

  params::Model& model_;
  comm::Group& group_;
  const DataParallelOptions options_;
  const spec::OrderedLayout layout_;
  const spec::ReplicaRange range_;
  params::FlatSpace space_;
  ReplicaBuffers buffers_;
  params::GradientHooks hooks_;
  GradientExchange exchange_;
  ReplicaPasses passes_;
  Duration clock_offset_{};
};

}  // namespace convoy::parallel

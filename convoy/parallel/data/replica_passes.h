// The forward and backward passes of a rank's replicas: one replica after the other, or in lock-step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/group.h"
#include "convoy/parallel/data/gradient_exchange.h"
#include "convoy/parallel/data/lockstep.h"
#include "convoy/parallel/data/replica_buffers.h"
#include "convoy/params/gradient_hooks.h"
#include "convoy/params/model.h"
#include "convoy/params/random_scope.h"

namespace convoy::parallel {

/// When one pass of one micro-batch ran. In lock-step a pass has several of these, between meetings of the replicas.
struct PassTimes {
  /// Whether it is the backward pass, or the forward one.
  bool backward = false;
  /// The replica.
  int replica = 0;
  /// Which of its micro-batches.
  int micro_batch = 0;
  /// When it began.
  TimePoint begin;
  /// When it ended.
  TimePoint end;
};

/// What decides the passes.
struct PassOptions {
  /// Logical replicas of all ranks, and those of this rank.
  int replicas = 1;
  /// The replicas of this rank.
  spec::ReplicaRange range;
  /// Seeds random layers.
  std::uint64_t seed = 1;
};

/// What the passes of one step found.
struct PassFacts {
  /// For each replica of all ranks the sum of the loss, filled for this rank's.
  std::span<double> losses;
  /// The same of what counted.
  std::span<double> counts;
  /// When each pass ran, in order of time.
  std::vector<PassTimes> times;

  /// Returns the time of all forward, or all backward passes.
  Duration total(bool backward) const;
};

/// Runs passes and hands gradients to the exchange.
/// Collective: run, all ranks, where the model computes across replicas
/// Threads:    one caller at a time
class ReplicaPasses {
 public:
  /// Ownership:  borrows everything while it lives
  ReplicaPasses(params::Model& model, comm::Group& group, const PassOptions& options, ReplicaBuffers& buffers,
                params::GradientHooks& hooks, GradientExchange& exchange);

  /// Runs a step; `batches` has the micro-batches of each replica of this rank. The exchange's step has begun; afterwards
  /// all replicas have ended in it.
  void run(std::int64_t step, std::span<const std::vector<params::Batch>> batches, PassFacts& facts);

 private:
  // What belongs to a replica while others of the rank have their turn.
  struct Suspended {
    bool delivering = false;
    bool backward = false;
    int micro_batch = 0;
    TimePoint since;
    torch::Tensor generator;
    std::vector<torch::Tensor> gradients;
  };

  void run_in_turn(std::int64_t step, std::span<const std::vector<params::Batch>> batches);
  void run_in_lockstep(std::int64_t step, std::span<const std::vector<params::Batch>> batches);
  void pass(const params::RandomPlace& place, const params::Batch& batch, bool last);
  void begin_part(int replica, int micro_batch, bool backward);
  void end_part(int replica);
  void leave(int replica);
  void enter(int replica);
  std::size_t place_of(int replica) const { return static_cast<std::size_t>(replica - options_.range.begin); }

  params::Model& model_;
  const PassOptions options_;
  ReplicaBuffers& buffers_;
  params::GradientHooks& hooks_;
  GradientExchange& exchange_;
  // Set where the model computes across replicas.
  std::optional<Lockstep> lockstep_;
  std::vector<Suspended> suspended_;
  PassFacts* facts_ = nullptr;
};

}  // namespace convoy::parallel

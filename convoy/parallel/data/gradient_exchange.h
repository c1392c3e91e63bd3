// The gradient exchange: takes gradients from backward, sums them along the canonical tree over all ranks, bucket by
// bucket while backward goes on.
//
// Words: a gradient is *taken* for one replica; a parameter is *complete* when the rank's last replica has been taken; a
// bucket is *ready* when all its parameters are complete, and *launched* once all earlier buckets are. All ranks launch
// the same buckets in the same order: the order in which gradients arrived on rank 0 in the first step.
//
// The exchange is *divided* where all ranks are on one host and share its memory: each rank sums its shard of a bucket into
// sums that lie once on the host, and nobody copies the rest.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/parallel/data/buckets.h"
#include "convoy/parallel/data/partial_sums.h"
#include "convoy/parallel/data/shard_plan.h"
#include "convoy/parallel/data/sparse_exchange.h"
#include "convoy/params/flat_space.h"
#include "convoy/params/gradient_sink.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::parallel {

/// When a bucket was ready, launched and finished, for traces and for the split of communication time.
struct BucketTimes {
  /// The size of the bucket.
  std::int64_t bytes = 0;
  TimePoint ready;
  TimePoint launched;
  /// When the thread that launched it went on, and when the whole sum was there.
  TimePoint returned;
  TimePoint finished;
};

/// Sums gradients over all replicas of all ranks.
/// Collective: all ranks, step by step
/// Threads:    one caller at a time, the one that runs backward
class GradientExchange final : public params::GradientSink {
 public:
  /// Ownership:  borrows space and group while it lives
  GradientExchange(const params::FlatSpace& space, comm::Group& group, const spec::OrderedLayout& layout,
                   std::int64_t bucket_bytes, bool overlap);
  ~GradientExchange() override;

  /// Starts a step; `active` says which parameters ask for gradients (the same on every rank).
  void begin_step(const std::vector<bool>& active);
  /// Says whose gradients are taken from now on: number `place` of the rank's replicas. In lock-step replicas take turns.
  void enter_replica(std::size_t place) { place_ = place; }
  void take(std::size_t slot, torch::Tensor gradient) override;
  /// Ends the present replica: parameters that it did not use count as zero.
  void end_replica();
  /// From now on a ready bucket waits for launch_up_to or finish_launching.
  void hold_launches() { held_launches_ = true; }
  /// Returns how many buckets, in order, are launched or ready.
  std::int64_t ready_buckets() const;
  /// Launches so many buckets in all, which are ready.
  void launch_up_to(std::int64_t count);
  /// Launches what is left, and returns without waiting.
  void finish_launching();
  /// Adds an operation that was submitted after the buckets and is waited for with them.
  void follow_with(comm::Work work);
  /// Exchanges the rows of sparse gradients; between finish_launching and the waits.
  void exchange_sparse();
  /// Waits for all buckets and what follows them; afterwards sums() holds the step's gradient (of a divided exchange: this
  /// rank's shards of it).
  void wait();
  /// Divided: waits for all buckets and meanwhile writes the sums of squares of those canonical blocks that lie in this
  /// rank's shards alone to `blocks`, by their number.
  void wait_and_square(std::span<double> blocks);
  /// Divided: the same for the blocks that lie in several ranks' shards. All ranks must have waited for their buckets.
  void square_mixed(std::span<double> blocks) const;
  /// Called after a step that succeeded: learns in the first one in which order gradients arrive, and which are sparse.
  void learn_order();

  /// Returns whether the exchange is divided.
  bool divided() const { return divided_; }
  /// Returns who updates what, by place on the host; null where every rank updates everything.
  const std::shared_ptr<const SharesByRank>& shares() const { return shares_; }
  /// Returns the summed gradients [FlatSpace::elements()]; zero where no gradient is asked for.
  const torch::Tensor& sums() const { return sums_; }
  /// Returns whether number `place` of the rank's replicas has used a parameter in this step.
  bool taken(std::size_t place, std::size_t slot) const { return taken_[place][slot]; }
  /// Returns this rank's own partial sums of a parameter, to look for the source of a non-finite gradient.
  std::vector<torch::Tensor> partials(std::size_t slot) const;
  /// Returns the buckets' times of the last step.
  const std::vector<BucketTimes>& times() const { return times_; }
  /// Returns the buckets.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Lets the gradients' memory go.
  void release();

 private:
  void plan_buckets();
  void put(std::size_t slot, torch::Tensor gradient);
  void push(std::size_t slot, torch::Tensor gradient);
  void complete(std::size_t slot);
  void launch_ready();
  void launch(std::size_t bucket);
  comm::Buffer output_of(std::size_t bucket) const;
  void square(std::span<const BlockRun> runs, std::span<double> blocks) const;

  // Constant.
  const params::FlatSpace& space_;
  comm::Group& group_;
  const spec::OrderedLayout layout_;
  const std::int64_t bucket_bytes_;
  const bool overlap_;
  const bool divided_;
  const std::vector<int> additions_;
  // The plan, renewed when the order or the set of active parameters changes.
  std::vector<std::size_t> order_;
  bool order_learnt_ = false;
  std::vector<bool> active_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;
  // Parameters whose gradients are sparse are in no bucket; which they are shows in the first step.
  std::vector<bool> sparse_;
  std::vector<std::size_t> sparse_slots_;
  std::vector<params::FlatSlice> sparse_own_;
  ShardPlan shards_;
  std::shared_ptr<const SharesByRank> shares_;
  // One step.
  std::vector<PartialSums> partials_;
  SparseExchange sparse_exchange_;
  std::vector<bool> came_sparse_;
  // By place of the replica, then by parameter.
  std::vector<std::vector<bool>> taken_;
  // How many replicas' gradients of a parameter were pushed; those that came before their turn are held, by place.
  std::vector<std::size_t> pushed_;
  std::vector<std::map<std::size_t, torch::Tensor>> early_;
  std::vector<std::size_t> arrivals_;
  std::vector<std::size_t> incomplete_;
  std::size_t place_ = 0;
  std::size_t ended_replicas_ = 0;
  std::size_t next_launch_ = 0;
  bool held_launches_ = false;
  std::vector<comm::Work> works_;
  std::vector<BucketTimes> times_;
  torch::Tensor sums_;
};

}  // namespace convoy::parallel

#include "convoy/parallel/data/gradient_exchange.h"

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::parallel {
namespace {

comm::Extent extent_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel()};
}

}  // namespace

GradientExchange::GradientExchange(const params::FlatSpace& space, comm::Group& group,
                                   const spec::OrderedLayout& layout, std::int64_t bucket_bytes, bool overlap)
    : space_(space),
      group_(group),
      layout_(layout),
      bucket_bytes_(bucket_bytes),
      overlap_(overlap),
      additions_(additions_by_replica(layout.leaves, layout.owners[static_cast<std::size_t>(group.rank())])),
      order_(space.slots().size()),
      partials_(space.slots().size()),
      sums_(space.make_like()) {
  // Until the order is learnt: gradients arrive about in reverse.
  std::iota(order_.rbegin(), order_.rend(), std::size_t{0});
}

GradientExchange::~GradientExchange() {
  try {
    comm::wait_all(works_);
  } catch (const std::exception&) {
    // The step that launched them has failed already and said so.
  }
}

void GradientExchange::begin_step(const std::vector<bool>& active) {
  if (active != active_) {
    for (std::size_t slot = 0; slot < active.size(); ++slot) {
      if (!active[slot]) space_.view(sums_, space_.slots()[slot]).zero_();
    }
    active_ = active;
    plan_buckets();
  }
  release();
  arrivals_.clear();
  incomplete_.clear();
  for (const Bucket& bucket : buckets_) incomplete_.push_back(bucket.slots.size());
  times_.assign(buckets_.size(), BucketTimes{});
  for (std::size_t i = 0; i < buckets_.size(); ++i) times_[i].bytes = buckets_[i].bytes;
  replica_ = 0;
  next_launch_ = 0;
  partial_bytes_ = 0;
  alive_bytes_ = 0;
  works_.clear();
}

void GradientExchange::plan_buckets() {
  const auto element = static_cast<std::int64_t>(element_bytes(space_.dtype()));
  std::vector<std::int64_t> bytes;
  for (const params::ParameterSlot& slot : space_.slots()) bytes.push_back(slot.elements * element);
  std::vector<std::size_t> order;
  for (const std::size_t slot : order_) {
    if (active_[slot] && space_.slots()[slot].elements > 0) order.push_back(slot);
  }
  buckets_ = make_buckets(order, bytes, bucket_bytes_);
  bucket_of_.assign(space_.slots().size(), buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    for (const std::size_t slot : buckets_[i].slots) bucket_of_[slot] = i;
  }
}

void GradientExchange::begin_replica() { taken_.assign(space_.slots().size(), false); }

void GradientExchange::take(std::size_t slot, torch::Tensor gradient) {
  CONVOY_CHECK(!taken_[slot], "a gradient was finished twice in one backward pass");
  taken_[slot] = true;
  if (replica_ == 0) arrivals_.push_back(slot);
  if (bucket_of_[slot] == buckets_.size()) return;  // no elements
  push(slot, std::move(gradient));
}

void GradientExchange::push(std::size_t slot, torch::Tensor gradient) {
  const auto bytes = static_cast<std::int64_t>(gradient.nbytes());
  alive_bytes_ += bytes;
  partial_bytes_ = std::max(partial_bytes_, alive_bytes_);
  alive_bytes_ -= bytes * additions_[replica_];
  partials_[slot].push(std::move(gradient), additions_[replica_]);
  complete(slot);
}

void GradientExchange::end_replica() {
  for (const Bucket& bucket : buckets_) {
    for (const std::size_t slot : bucket.slots) {
      if (taken_[slot]) continue;
      push(slot, torch::zeros(space_.slots()[slot].shape, space_.values().options()));
    }
  }
  ++replica_;
}

void GradientExchange::complete(std::size_t slot) {
  if (replica_ + 1 != additions_.size()) return;
  const std::size_t bucket = bucket_of_[slot];
  if (--incomplete_[bucket] != 0) return;
  times_[bucket].ready = system_clock().now();
  if (overlap_) launch_ready();
}

void GradientExchange::launch_ready() {
  while (next_launch_ < buckets_.size() && incomplete_[next_launch_] == 0) launch(next_launch_++);
}

void GradientExchange::finish_launching() {
  CONVOY_CHECK(replica_ == additions_.size(), "every replica of the rank has ended");
  launch_ready();
  CONVOY_CHECK(next_launch_ == buckets_.size(), "every bucket is ready once all replicas have ended");
}

void GradientExchange::launch(std::size_t bucket) {
  const std::vector<std::size_t>& slots = buckets_[bucket].slots;
  const std::size_t partials = partials_[slots.front()].sums().size();
  std::vector<comm::Buffer> inputs;
  for (std::size_t k = 0; k < partials; ++k) {
    std::vector<comm::Extent> extents;
    for (const std::size_t slot : slots) extents.push_back(extent_of(partials_[slot].sums()[k]));
    inputs.emplace_back(std::move(extents));
  }
  std::vector<comm::Extent> outputs;
  for (const std::size_t slot : slots) outputs.push_back(extent_of(space_.view(sums_, space_.slots()[slot])));
  times_[bucket].launched = system_clock().now();
  works_.push_back(comm::ordered_all_reduce_async(group_, layout_, std::move(inputs),
                                                  comm::Buffer(std::move(outputs)), space_.dtype()));
}

void GradientExchange::follow_with(comm::Work work) { works_.push_back(std::move(work)); }

void GradientExchange::wait() {
  comm::wait_all(works_);
  for (std::size_t i = 0; i < times_.size(); ++i) times_[i].finished = works_[i].completed_at();
}

void GradientExchange::learn_order() {
  if (order_learnt_) return;
  // Parameters that did not arrive come last; rank 0's order holds for everybody.
  std::vector<std::int64_t> order(arrivals_.begin(), arrivals_.end());
  for (std::size_t slot = 0; slot < order_.size(); ++slot) {
    if (std::find(arrivals_.begin(), arrivals_.end(), slot) == arrivals_.end()) {
      order.push_back(static_cast<std::int64_t>(slot));
    }
  }
  comm::broadcast_async(group_, comm::Buffer(std::span<std::int64_t>(order)), 0, DType::kInt64).wait();
  order_.assign(order.begin(), order.end());
  order_learnt_ = true;
  plan_buckets();
}

void GradientExchange::release() {
  for (PartialSums& partials : partials_) partials.clear();
}

}  // namespace convoy::parallel

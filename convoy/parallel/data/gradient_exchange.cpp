#include "convoy/parallel/data/gradient_exchange.h"

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/comm/shared_memory/host_memory.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/params/arena_allocator.h"
#include "convoy/params/optimizer.h"
#include "convoy/spec/blocks.h"

namespace convoy::parallel {
namespace {

comm::Extent extent_of(const torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel()};
}

bool on_one_host(const comm::Group& group) {
  return comm::ranks_of_host(group).size() == static_cast<std::size_t>(group.size());
}

// Where parameters are shared but the exchange is not divided, every rank takes the whole sum into memory of its own.
torch::Tensor make_sums(const params::FlatSpace& space, bool divided) {
  const observe::MemoryScope scope(observe::MemoryCategory::kGradients);
  if (divided || !space.memory().shared()) return space.make_like();
  return params::FlatMemory().make(space.elements(), space.values().scalar_type());
}

std::vector<FlatPlace> places_of(const params::FlatSpace& space) {
  std::vector<FlatPlace> places;
  for (const params::ParameterSlot& slot : space.slots()) places.push_back({slot.offset, slot.elements});
  return places;
}

}  // namespace

GradientExchange::GradientExchange(const params::FlatSpace& space, comm::Group& group,
                                   const spec::OrderedLayout& layout, std::int64_t bucket_bytes, bool overlap)
    : space_(space),
      group_(group),
      layout_(layout),
      bucket_bytes_(bucket_bytes),
      overlap_(overlap),
      divided_(space.memory().shared() && on_one_host(group)),
      additions_(additions_by_replica(layout.leaves, layout.owners[static_cast<std::size_t>(group.rank())])),
      order_(space.slots().size()),
      sparse_(space.slots().size(), false),
      partials_(space.slots().size()),
      sparse_exchange_(space, group, layout),
      came_sparse_(space.slots().size(), false),
      sums_(make_sums(space, divided_)) {
  // Until the order is learnt: gradients arrive about in reverse.
  std::iota(order_.rbegin(), order_.rend(), std::size_t{0});
  if (space.memory().shared() && !divided_) {
    shares_ = plan_even_shares(places_of(space), space.elements(), space.memory().sharers());
  }
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
  taken_.assign(additions_.size(), std::vector<bool>(active.size(), false));
  pushed_.assign(active.size(), 0);
  early_.assign(active.size(), {});
  place_ = 0;
  ended_replicas_ = 0;
  next_launch_ = 0;
  held_launches_ = false;
  works_.clear();
  sparse_exchange_.begin_step();
}

void GradientExchange::plan_buckets() {
  const auto element = static_cast<std::int64_t>(element_bytes(space_.dtype()));
  std::vector<std::int64_t> bytes;
  for (const params::ParameterSlot& slot : space_.slots()) bytes.push_back(slot.elements * element);
  std::vector<std::size_t> order;
  for (const std::size_t slot : order_) {
    if (active_[slot] && space_.slots()[slot].elements > 0 && !sparse_[slot]) order.push_back(slot);
  }
  buckets_ = make_buckets(order, bytes, bucket_bytes_);
  bucket_of_.assign(space_.slots().size(), buckets_.size());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    for (const std::size_t slot : buckets_[i].slots) bucket_of_[slot] = i;
  }
  sparse_slots_.clear();
  for (std::size_t slot = 0; slot < sparse_.size(); ++slot) {
    if (sparse_[slot] && active_[slot] && space_.slots()[slot].elements > 0) sparse_slots_.push_back(slot);
  }
  sparse_own_.clear();
  if (!divided_) {
    for (const std::size_t slot : sparse_slots_) {
      sparse_own_.push_back({slot, space_.slots()[slot].offset, space_.slots()[slot].elements});
    }
    return;
  }
  // Sums and updates of sparse parameters are divided like those of one more bucket.
  std::vector<Bucket> all = buckets_;
  all.push_back({sparse_slots_, 0});
  shards_ = plan_shards(places_of(space_), all, group_.size(), group_.rank());
  shares_ = shards_.shares;
  sparse_own_ = shards_.buckets.back()[static_cast<std::size_t>(group_.rank())];
}

void GradientExchange::take(std::size_t slot, torch::Tensor gradient) {
  CONVOY_CHECK(!taken_[place_][slot], "a gradient was finished twice in one backward pass");
  taken_[place_][slot] = true;
  if (place_ == 0) arrivals_.push_back(slot);
  if (gradient.is_sparse()) came_sparse_[slot] = true;
  if (sparse_[slot]) return sparse_exchange_.take(place_, slot, gradient);
  if (bucket_of_[slot] == buckets_.size()) return;  // no elements
  put(slot, gradient.is_sparse() ? gradient.to_dense() : std::move(gradient));
}

// Sums go along the tree in the order of replicas, whoever is first.
void GradientExchange::put(std::size_t slot, torch::Tensor gradient) {
  if (pushed_[slot] != place_) {
    early_[slot].emplace(place_, std::move(gradient));
    return;
  }
  push(slot, std::move(gradient));
  for (auto next = early_[slot].find(pushed_[slot]); next != early_[slot].end();
       next = early_[slot].find(pushed_[slot])) {
    push(slot, std::move(next->second));
    early_[slot].erase(next);
  }
}

void GradientExchange::push(std::size_t slot, torch::Tensor gradient) {
  params::retag(gradient, observe::MemoryCategory::kGradientPartials);
  partials_[slot].push(std::move(gradient), additions_[pushed_[slot]]);
  if (++pushed_[slot] == additions_.size()) complete(slot);
}

void GradientExchange::end_replica() {
  for (const Bucket& bucket : buckets_) {
    for (const std::size_t slot : bucket.slots) {
      if (taken_[place_][slot]) continue;
      put(slot, torch::zeros(space_.slots()[slot].shape, space_.values().options()));
    }
  }
  ++ended_replicas_;
}

void GradientExchange::complete(std::size_t slot) {
  const std::size_t bucket = bucket_of_[slot];
  if (--incomplete_[bucket] != 0) return;
  times_[bucket].ready = system_clock().now();
  if (overlap_ && !held_launches_) launch_ready();
}

void GradientExchange::launch_ready() { launch_up_to(ready_buckets()); }

std::int64_t GradientExchange::ready_buckets() const {
  std::size_t ready = next_launch_;
  while (ready < buckets_.size() && incomplete_[ready] == 0) ++ready;
  return static_cast<std::int64_t>(ready);
}

void GradientExchange::launch_up_to(std::int64_t count) {
  while (next_launch_ < static_cast<std::size_t>(count)) launch(next_launch_++);
}

void GradientExchange::finish_launching() {
  CONVOY_CHECK(ended_replicas_ == additions_.size(), "every replica of the rank has ended");
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
  comm::Buffer output = output_of(bucket);
  times_[bucket].launched = system_clock().now();
  if (divided_) {
    const std::int64_t elements = buckets_[bucket].bytes / static_cast<std::int64_t>(element_bytes(space_.dtype()));
    works_.push_back(comm::ordered_reduce_scatter_async(group_, layout_, std::move(inputs), std::move(output), elements,
                                                        space_.dtype()));
  } else {
    works_.push_back(
        comm::ordered_all_reduce_async(group_, layout_, std::move(inputs), std::move(output), space_.dtype()));
  }
  times_[bucket].returned = system_clock().now();
}

comm::Buffer GradientExchange::output_of(std::size_t bucket) const {
  std::vector<comm::Extent> outputs;
  if (divided_) {
    for (const params::FlatSlice& slice : shards_.buckets[bucket][static_cast<std::size_t>(group_.rank())]) {
      outputs.push_back(extent_of(sums_.narrow(0, slice.begin, slice.count)));
    }
  } else {
    for (const std::size_t slot : buckets_[bucket].slots) {
      outputs.push_back(extent_of(space_.view(sums_, space_.slots()[slot])));
    }
  }
  return comm::Buffer(std::move(outputs));
}

void GradientExchange::exchange_sparse() { sparse_exchange_.run(sparse_slots_, sparse_own_, sums_); }

std::vector<torch::Tensor> GradientExchange::partials(std::size_t slot) const {
  return sparse_[slot] ? sparse_exchange_.values(slot) : partials_[slot].sums();
}

void GradientExchange::follow_with(comm::Work work) { works_.push_back(std::move(work)); }

void GradientExchange::wait() {
  comm::wait_all(works_);
  for (std::size_t i = 0; i < times_.size(); ++i) times_[i].finished = works_[i].completed_at();
}

void GradientExchange::wait_and_square(std::span<double> blocks) {
  try {
    for (std::size_t i = 0; i < works_.size(); ++i) {
      works_[i].wait();
      times_[i].finished = works_[i].completed_at();
      square(shards_.own_blocks[i], blocks);
    }
    square(shards_.own_blocks.back(), blocks);
  } catch (...) {
    const std::exception_ptr first = std::current_exception();
    try {
      comm::wait_all(works_);
    } catch (const std::exception&) {
      // The first failure says what was wrong.
    }
    std::rethrow_exception(first);
  }
}

void GradientExchange::square_mixed(std::span<double> blocks) const { square(shards_.mixed_blocks, blocks); }

void GradientExchange::square(std::span<const BlockRun> runs, std::span<double> blocks) const {
  for (const BlockRun& run : runs) {
    const spec::ElementRange range{run.begin * spec::kBlockElements,
                                   std::min(run.end * spec::kBlockElements, space_.elements())};
    params::block_square_sums(space_, sums_, range, blocks.data() + run.begin);
  }
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
  // A parameter whose gradient was sparse anywhere is exchanged by rows from now on.
  std::vector<std::int64_t> sparse(came_sparse_.begin(), came_sparse_.end());
  comm::all_reduce(group_, sparse.data(), sparse.data(), static_cast<std::int64_t>(sparse.size()), DType::kInt64,
                   ReduceOp::kMax);
  sparse_.assign(sparse.begin(), sparse.end());
  order_learnt_ = true;
  plan_buckets();
}

void GradientExchange::release() {
  for (PartialSums& partials : partials_) partials.clear();
}

}  // namespace convoy::parallel

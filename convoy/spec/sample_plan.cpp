#include "convoy/spec/sample_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "convoy/base/error.h"
#include "convoy/base/mutex.h"
#include "convoy/base/random.h"

namespace convoy::spec {
namespace {

// The part `index` of `parts` of [0, total), as even as it divides, earlier parts one more.
std::pair<std::int64_t, std::int64_t> even_part(std::int64_t total, std::int64_t parts, std::int64_t index) {
  const std::int64_t whole = total / parts;
  const std::int64_t longer = total % parts;
  const auto first = [&](std::int64_t i) { return i * whole + std::min(i, longer); };
  return {first(index), first(index + 1)};
}

}  // namespace

struct SamplePlan::Cache {
  Mutex mutex;
  std::map<std::int64_t, std::shared_ptr<const std::vector<std::int64_t>>> orders CONVOY_GUARDED_BY(mutex);
};

SamplePlan::SamplePlan(const SamplePlanOptions& options) : options_(options), cache_(std::make_unique<Cache>()) {
  if (options.samples < 1 || options.global_batch < 1 || options.replicas < 1 || options.accumulation < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a sample plan needs at least 1 sample, global batch, replica and micro-batch (given {}, {}, "
                            "{}, {})",
                            options.samples, options.global_batch, options.replicas, options.accumulation));
  }
  if (steps_per_epoch() < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} samples are fewer than one global batch of {}, and drop_last leaves short ones out",
                            options.samples, options.global_batch));
  }
}

SamplePlan::~SamplePlan() = default;

std::int64_t SamplePlan::steps_per_epoch() const {
  const std::int64_t whole = options_.samples / options_.global_batch;
  return options_.drop_last || options_.samples % options_.global_batch == 0 ? whole : whole + 1;
}

std::shared_ptr<const std::vector<std::int64_t>> SamplePlan::order(std::int64_t epoch) const {
  const MutexLock lock(cache_->mutex);
  auto& kept = cache_->orders[epoch];
  if (kept) return kept;
  auto made = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(options_.samples));
  std::iota(made->begin(), made->end(), 0);
  RandomStream stream(StreamPurpose::kSampleOrder, {options_.seed, static_cast<std::uint64_t>(epoch)});
  for (std::size_t i = made->size(); i > 1; --i) std::swap((*made)[i - 1], (*made)[stream.below(i)]);
  kept = made;
  // The loader works at most one epoch ahead of the step loop, so two orders are enough.
  while (cache_->orders.size() > 2) {
    const auto other = cache_->orders.begin()->first == epoch ? std::prev(cache_->orders.end()) : cache_->orders.begin();
    cache_->orders.erase(other);
  }
  return made;
}

std::vector<std::int64_t> SamplePlan::step_samples(std::int64_t step) const {
  if (step < 0) throw Error(ErrorCode::kInvalidArgument, "steps are counted from 0");
  const auto all = order(epoch_of(step));
  const std::int64_t begin = step % steps_per_epoch() * options_.global_batch;
  const std::int64_t end = std::min(options_.samples, begin + options_.global_batch);
  return {all->begin() + begin, all->begin() + end};
}

std::vector<std::int64_t> SamplePlan::replica_samples(std::int64_t step, int replica) const {
  if (replica < 0 || replica >= options_.replicas) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no replica {} of {}", replica, options_.replicas));
  }
  const std::vector<std::int64_t> all = step_samples(step);
  const auto [begin, end] = even_part(static_cast<std::int64_t>(all.size()), options_.replicas, replica);
  return {all.begin() + begin, all.begin() + end};
}

std::vector<std::vector<std::int64_t>> SamplePlan::micro_batches(std::int64_t step, int replica) const {
  const std::vector<std::int64_t> mine = replica_samples(step, replica);
  std::vector<std::vector<std::int64_t>> parts;
  for (int i = 0; i < options_.accumulation; ++i) {
    const auto [begin, end] = even_part(static_cast<std::int64_t>(mine.size()), options_.accumulation, i);
    parts.emplace_back(mine.begin() + begin, mine.begin() + end);
  }
  return parts;
}

std::int64_t SamplePlan::samples_before(std::int64_t step) const {
  const std::int64_t per_epoch =
      options_.drop_last ? steps_per_epoch() * options_.global_batch : options_.samples;
  const std::int64_t inside = std::min(per_epoch, step % steps_per_epoch() * options_.global_batch);
  return epoch_of(step) * per_epoch + inside;
}

std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch) {
  if (samples < 0 || batch < 1) throw Error(ErrorCode::kInvalidArgument, "an evaluation batch has at least one sample");
  return (samples + batch - 1) / batch;
}

BatchRange evaluation_share(std::int64_t batches, int ranks, int rank) {
  if (ranks < 1 || rank < 0 || rank >= ranks) throw Error(ErrorCode::kInvalidArgument, "no such rank");
  const auto [begin, end] = even_part(batches, ranks, rank);
  return {begin, end};
}

}  // namespace convoy::spec

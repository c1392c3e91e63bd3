// The loader's thread and the hand-over of its buffers.
#include "convoy/records/loader.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

// A wait looks up after this time at the latest; it is woken by every change, so the time decides nothing.
constexpr std::chrono::milliseconds kLookUp{200};

void check(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorCode::kInvalidArgument, message);
}

void check_options(const BatchSource& training, const spec::SamplePlan& plan, const LoaderOptions& options) {
  const spec::SamplePlanOptions& planned = plan.options();
  check(static_cast<std::int64_t>(training.indexes.size()) == planned.samples,
        fmt::format("the training part has {} samples, but the sample plan {}", training.indexes.size(),
                    planned.samples));
  const bool inside = std::all_of(training.indexes.begin(), training.indexes.end(),
                                  [&](std::int64_t index) { return index >= 0 && index < training.dataset.count(); });
  check(inside,
        fmt::format("the training part names a sample that is not among the {} of the data", training.dataset.count()));
  check(options.replicas.begin >= 0 && options.replicas.begin <= options.replicas.end &&
            options.replicas.end <= planned.replicas,
        fmt::format("replicas [{}, {}) are not among the {} of the sample plan", options.replicas.begin,
                    options.replicas.end, planned.replicas));
  check(options.first_step >= 0 && options.end_step >= options.first_step,
        fmt::format("steps [{}, {}) are no range of steps", options.first_step, options.end_step));
  check(options.prefetch >= 1, fmt::format("data.prefetch = {} prepares nothing: at least 1", options.prefetch));
  check(
      options.class_weights.empty() ||
          options.class_weights.size() == static_cast<std::size_t>(training.dataset.classes()),
      fmt::format("{} class weights do not fit {} classes", options.class_weights.size(), training.dataset.classes()));
}

}  // namespace

Loader::Loader(const BatchSource& training, const spec::SamplePlan& plan, const LoaderOptions& options)
    : training_(training), plan_(plan), options_(options), next_step_(options.first_step) {
  check_options(training, plan, options);
  // Those that are prepared or being prepared, and the one in use.
  const std::int64_t ahead = std::min(options.prefetch, options.end_step - options.first_step);
  for (std::int64_t i = 0; i < ahead + 1; ++i) free_.push_back(std::make_unique<StepBatch>());
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Loader::~Loader() {
  thread_.request_stop();
  {
    // A waiter that looked at the token before the request holds the lock until it sleeps: it hears this notification.
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  thread_.join();
}

StepBatch& Loader::next(Duration limit) {
  check(!done(), fmt::format("the loader has handed out all steps up to {}", options_.end_step));
  const Deadline deadline(system_clock(), limit);
  const TimePoint asked = system_clock().now();
  const MutexLock lock(mutex_);
  if (in_use_) {
    free_.push_back(std::move(in_use_));
    changed_.notify_all();
  }
  while (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("the batches of step {} were not ready after {:.1f} s", next_step_,
                                                   to_seconds(deadline.limit())));
    }
    changed_.wait_for(mutex_, std::min<Duration>(kLookUp, deadline.remaining()));
  }
  in_use_ = std::move(ready_.front());
  ready_.erase(ready_.begin());
  changed_.notify_all();
  in_use_->waited = system_clock().now() - asked;
  CONVOY_CHECK(in_use_->step == next_step_, "steps come in order");
  ++next_step_;
  return *in_use_;
}

void Loader::work(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "loader");
  try {
    for (std::int64_t step = options_.first_step; step < options_.end_step; ++step) {
      std::unique_ptr<StepBatch> batch = take_free(stop);
      if (!batch || !prepare(step, stop, *batch)) return;
      const MutexLock lock(mutex_);
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const MutexLock lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

// Waits until a step may be prepared and returns its buffers; nothing when the loader is to stop.
std::unique_ptr<StepBatch> Loader::take_free(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!free_.empty() && static_cast<std::int64_t>(ready_.size()) < options_.prefetch) {
      std::unique_ptr<StepBatch> batch = std::move(free_.back());
      free_.pop_back();
      return batch;
    }
    changed_.wait_for(mutex_, kLookUp);
  }
  return nullptr;
}

// Prepares a step; returns false when it was stopped on the way.
bool Loader::prepare(std::int64_t step, const std::stop_token& stop, StepBatch& batch) const {
  const TimePoint began = system_clock().now();
  batch.step = step;
  batch.epoch = plan_.epoch_of(step);
  batch.replicas.resize(static_cast<std::size_t>(options_.replicas.size()));
  for (std::size_t held = 0; held < batch.replicas.size(); ++held) {
    ReplicaBatches& mine = batch.replicas[held];
    mine.replica = options_.replicas.begin + static_cast<int>(held);
    const auto planned = plan_.micro_batches(step, mine.replica);
    mine.micro_batches.resize(planned.size());
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (!prepare(planned[i], batch.epoch, stop, mine.micro_batches[i])) return false;
    }
  }
  std::int64_t bytes = 0;
  for (const ReplicaBatches& mine : batch.replicas) {
    for (const Batch& micro_batch : mine.micro_batches) bytes += micro_batch.memory_bytes();
  }
  if (bytes != batch.memory.bytes()) batch.memory = {observe::MemoryCategory::kBatch, bytes};
  batch.prepared = system_clock().now();
  batch.prepare = batch.prepared - began;
  return true;
}

// The same for one micro-batch.
bool Loader::prepare(std::span<const std::int64_t> ids, std::int64_t epoch, const std::stop_token& stop,
                     Batch& batch) const {
  std::vector<std::int64_t> drawn;
  if (options_.draws) drawn = options_.draws->samples_of(epoch, ids);
  const std::span<const std::int64_t> picked = options_.draws ? drawn : ids;
  begin_batch(training_, ids, picked, batch);
  if (!options_.class_weights.empty()) {
    for (const std::int64_t label : batch.labels) {
      batch.weights.push_back(options_.class_weights[static_cast<std::size_t>(label)]);
    }
  }
  for (std::size_t place = 0; place < ids.size(); ++place) {
    if (stop.stop_requested()) return false;
    prepare_sample(training_, place, picked, {true, plan_.options().seed, epoch, ids[place]}, batch);
  }
  return true;
}

}  // namespace convoy::records

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
  const ImageSet& images = training.images;
  check(images.labels.size() == static_cast<std::size_t>(images.count) &&
            images.pixels.size() == static_cast<std::size_t>(images.count * images.image_size()),
        fmt::format("the image set lacks pixels or labels of its {} images", images.count));
  check(static_cast<std::int64_t>(training.indexes.size()) == planned.samples,
        fmt::format("the training part has {} samples, but the sample plan {}", training.indexes.size(),
                    planned.samples));
  const bool inside = std::all_of(training.indexes.begin(), training.indexes.end(),
                                  [&](std::int64_t index) { return index >= 0 && index < images.count; });
  check(inside, fmt::format("the training part names an image that is not among the {} of its set", images.count));
  check(options.replicas.begin >= 0 && options.replicas.begin <= options.replicas.end &&
            options.replicas.end <= planned.replicas,
        fmt::format("replicas [{}, {}) are not among the {} of the sample plan", options.replicas.begin,
                    options.replicas.end, planned.replicas));
  check(options.first_step >= 0 && options.end_step >= options.first_step,
        fmt::format("steps [{}, {}) are no range of steps", options.first_step, options.end_step));
  check(options.prefetch >= 1, fmt::format("data.prefetch = {} prepares nothing: at least 1", options.prefetch));
  check(options.augment.shift >= 0 && options.augment.shift < std::min(images.rows, images.columns),
        fmt::format("data.shift = {} moves images of {} x {} out of sight", options.augment.shift, images.rows,
                    images.columns));
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
      Batch& micro_batch = mine.micro_batches[i];
      begin_batch(training_, planned[i], micro_batch);
      for (std::size_t place = 0; place < planned[i].size(); ++place) {
        if (stop.stop_requested()) return false;
        const Variation variation =
            draw_variation(options_.augment, plan_.options().seed, batch.epoch, planned[i][place]);
        prepare_sample(training_, place, variation, micro_batch);
      }
    }
  }
  batch.prepare = system_clock().now() - began;
  return true;
}

}  // namespace convoy::records

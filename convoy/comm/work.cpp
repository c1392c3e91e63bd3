// Work: completing an operation, waiting for it, and what happens to one that nobody waited for.
#include "convoy/comm/work.h"

#include <utility>

#include "convoy/base/log.h"

namespace convoy::comm {
namespace {

constexpr auto kSlice = std::chrono::seconds(1);

}  // namespace

void WorkState::complete(std::exception_ptr error) {
  MutexLock lock(mutex_);
  if (done_) return;
  done_ = true;
  error_ = std::move(error);
  completed_at_ = system_clock().now();
  changed_.notify_all();
}

bool WorkState::done() const {
  MutexLock lock(mutex_);
  return done_;
}

bool WorkState::wait_for(Duration limit) {
  const Deadline deadline(system_clock(), limit);
  MutexLock lock(mutex_);
  while (!done_ && !deadline.expired()) changed_.wait_for(mutex_, deadline.remaining());
  return done_;
}

std::exception_ptr WorkState::take_error() {
  MutexLock lock(mutex_);
  return std::exchange(error_, nullptr);
}

TimePoint WorkState::completed_at() const {
  MutexLock lock(mutex_);
  return completed_at_;
}

Work& Work::operator=(Work&& other) noexcept {
  if (this == &other) return *this;
  drop();
  state_ = std::move(other.state_);
  completed_at_ = other.completed_at_;
  return *this;
}

Work::~Work() { drop(); }

void Work::wait() {
  if (state_ == nullptr) return;
  // Without a limit of its own: the engine completes every operation within the group's deadline.
  while (!state_->wait_for(kSlice)) {
  }
  const std::shared_ptr<WorkState> state = std::move(state_);
  completed_at_ = state->completed_at();
  if (const std::exception_ptr error = state->take_error()) std::rethrow_exception(error);
}

void Work::drop() noexcept {
  if (state_ == nullptr) return;
  const std::string what = state_->what();
  bool failed = true;
  try {
    wait();
    failed = false;
  } catch (...) {
    // Nobody can be told but the log.
  }
  try {
    log_error("defect: the work on {} was dropped without wait(); it has been waited for and {}", what,
              failed ? "failed" : "succeeded");
  } catch (...) {
    // A log that cannot be written must not end the process here.
  }
}

void wait_all(std::span<Work> works) {
  std::exception_ptr first;
  for (Work& work : works) {
    try {
      work.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace convoy::comm

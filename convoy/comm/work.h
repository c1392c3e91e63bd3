// Work: the result of an operation that goes on in the background. It cannot be dropped.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "convoy/base/clock.h"
#include "convoy/base/mutex.h"

namespace convoy::comm {

/// What the two ends of a Work share: the engine completes it, the holder waits for it.
/// Threads:    any
class WorkState {
 public:
  /// Names the operation in messages.
  explicit WorkState(std::string what) : what_(std::move(what)) {}
  /// Marks the work as done; the error is null on success. Only the first call counts.
  void complete(std::exception_ptr error);
  /// Returns whether it is done.
  bool done() const;
  /// Waits until it is done or the limit is over; returns whether it is done.
  bool wait_for(Duration limit);
  /// Hands over the error, once; null when there is none or it is not done.
  /// Ownership:  the caller's alone, so that no two threads ever hold the same exception object
  std::exception_ptr take_error();
  /// Returns when it was completed; the default-made time when it was not.
  TimePoint completed_at() const;
  /// Returns the operation's name.
  const std::string& what() const { return what_; }

 private:
  const std::string what_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool done_ CONVOY_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ CONVOY_GUARDED_BY(mutex_);
  TimePoint completed_at_ CONVOY_GUARDED_BY(mutex_);
};

/// An operation that goes on in the background.
/// Ownership:  the operation's buffers are borrowed until wait() returns or throws
/// Threads:    one caller at a time
/// Errors:     a Work that is destroyed without wait() is waited for and reported in the log as a defect
class [[nodiscard]] Work {
 public:
  Work() = default;
  /// Holds the state that an engine will complete.
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
  Work(Work&& other) noexcept = default;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  /// Waits until the operation is done. The engine ends every operation within its group's deadline.
  /// Errors:     what the operation failed with (kTimeout, kAborted, kDesync, kPeerLost ...)
  void wait();
  /// Returns whether wait() would return at once.
  bool done() const { return state_ == nullptr || state_->done(); }
  /// Returns when the operation was completed, for traces.
  TimePoint completed_at() const { return state_ == nullptr ? completed_at_ : state_->completed_at(); }

 private:
  void drop() noexcept;
  std::shared_ptr<WorkState> state_;
  TimePoint completed_at_{};
};

/// Waits for all, and then throws the first error among them: no work is left behind when an early one fails.
void wait_all(std::span<Work> works);

}  // namespace convoy::comm

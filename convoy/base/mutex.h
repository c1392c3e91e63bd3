// A mutex whose rules the compiler checks (clang's thread safety analysis, preset clang-check).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CONVOY_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define CONVOY_THREAD_ANNOTATION(x)
#endif

/// Marks a type as a lock.
#define CONVOY_CAPABILITY(x) CONVOY_THREAD_ANNOTATION(capability(x))
/// Marks a type that holds a lock while it lives.
#define CONVOY_SCOPED_CAPABILITY CONVOY_THREAD_ANNOTATION(scoped_lockable)
/// Marks a field that may be touched only while the lock is held.
#define CONVOY_GUARDED_BY(x) CONVOY_THREAD_ANNOTATION(guarded_by(x))
/// Marks a function that must be called with the lock held.
#define CONVOY_REQUIRES(...) CONVOY_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// Marks a function that takes the lock.
#define CONVOY_ACQUIRE(...) CONVOY_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
/// Marks a function that gives the lock back.
#define CONVOY_RELEASE(...) CONVOY_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
/// Switches the analysis off for a function whose locking it cannot follow.
#define CONVOY_NO_THREAD_SAFETY_ANALYSIS CONVOY_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace convoy {

/// A std::mutex that the lock analysis knows.
class CONVOY_CAPABILITY("mutex") Mutex {
 public:
  /// Takes the lock.
  void lock() CONVOY_ACQUIRE() { mutex_.lock(); }
  /// Gives the lock back.
  void unlock() CONVOY_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

/// Holds a Mutex while it lives.
class CONVOY_SCOPED_CAPABILITY MutexLock {
 public:
  /// Takes the lock.
  explicit MutexLock(Mutex& mutex) CONVOY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() CONVOY_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Waits always have a limit: no hang, ever.
class CondVar {
 public:
  /// Waits for a notification for at most the limit; returns false on the limit. May wake without cause.
  template <typename Rep, typename Period>
  bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> limit) CONVOY_REQUIRES(mutex)
      CONVOY_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool notified = condition_.wait_for(lock, limit) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  /// Wakes one waiting thread.
  void notify_one() { condition_.notify_one(); }
  /// Wakes all waiting threads.
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace convoy

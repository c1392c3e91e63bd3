// The Clock seam: where time comes from, so that tests can drive it by hand.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace convoy {

/// A duration in nanoseconds, the unit of every wait and every measurement.
using Duration = std::chrono::nanoseconds;

/// A point on the steady clock.
using TimePoint = std::chrono::steady_clock::time_point;

/// Tells the time and sleeps.
/// Threads:    all methods from any thread
class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns the time now; never goes back.
  virtual TimePoint now() const = 0;
  /// Blocks for the duration (a hand-driven clock moves on by it instead).
  virtual void sleep_for(Duration duration) = 0;
};

/// Returns the process's real clock.
/// Ownership:  lives for the whole process
Clock& system_clock();

/// A clock that moves only when told to: the fake behind the seam.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(now_ns_.load())); }
  void sleep_for(Duration duration) override { advance(duration); }
  /// Moves the clock on.
  void advance(Duration duration) { now_ns_ += duration.count(); }

 private:
  std::atomic<std::int64_t> now_ns_{0};
};

/// Returns a duration in milliseconds.
inline double to_ms(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

/// Returns a duration in seconds.
inline double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The moment at which a wait gives up.
class Deadline {
 public:
  /// Makes the deadline that lies `limit` from now on the clock, or at the end of the clock when that comes first.
  Deadline(const Clock& clock, Duration limit)
      : clock_(&clock), at_(later(clock.now(), limit)), limit_(limit) {}
  /// Returns whether the moment has passed.
  bool expired() const { return clock_->now() >= at_; }
  /// Returns what is left, never negative.
  Duration remaining() const {
    const auto left = std::chrono::duration_cast<Duration>(at_ - clock_->now());
    return left.count() > 0 ? left : Duration(0);
  }
  /// Returns the whole length of the wait, for messages.
  Duration limit() const { return limit_; }

 private:
  static TimePoint later(TimePoint now, Duration limit) {
    return limit > TimePoint::max() - now ? TimePoint::max() : now + limit;
  }

  const Clock* clock_;
  TimePoint at_;
  Duration limit_;
};

}  // namespace convoy

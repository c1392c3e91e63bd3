// The operator counter: how many operators a step runs, and how much of the processor they take.
#pragma once

#include <cstdint>

namespace convoy::train {

/// What was counted.
struct OperatorCount {
  /// Operators that a forward or backward pass called itself, with all that these call counted as their own.
  std::int64_t operators = 0;
  /// Their processor time in nanoseconds: what other processes take meanwhile is not in it.
  std::int64_t time_ns = 0;
};

/// Counts libtorch's operators of the whole process from start to stop.
/// Threads:    start and stop from one thread, while no other runs operators; counts those of threads that take turns
/// Cost:       two readings of the thread's clock and an allocation an operator while it counts, nothing otherwise
class OperatorCounter {
 public:
  OperatorCounter() = default;
  ~OperatorCounter();
  OperatorCounter(const OperatorCounter&) = delete;
  OperatorCounter& operator=(const OperatorCounter&) = delete;

  /// Counts from 0.
  /// Errors:     kInternal when one counts already
  void start();
  /// Stops, and returns what was counted; zeros when nothing was.
  OperatorCount stop();

 private:
  std::uint64_t callback_ = 0;
  bool counting_ = false;
};

}  // namespace convoy::train

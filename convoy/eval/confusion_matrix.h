// The confusion matrix: counts of (truth, predicted), from which every rate of a classifier follows.
//
// Counts are merged, rates never: a mean of ranks' rates is not the rate of all samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy::eval {

/// The rates of one class. A rate whose denominator is 0 is 0.
struct ClassRates {
  /// Of those predicted as the class, the share that is of it.
  double precision = 0.0;
  /// Of those of the class, the share that was predicted so.
  double recall = 0.0;
  /// 2 tp / (2 tp + fp + fn).
  double f1 = 0.0;
  /// How many samples are of the class.
  std::int64_t support = 0;
};

/// Counts of every pair (truth, predicted).
/// Threads:    none; each thread has its own, merged afterwards
class ConfusionMatrix {
 public:
  /// Makes a matrix without counts.
  /// Errors:     kInvalidArgument when there are no classes
  explicit ConfusionMatrix(int classes);

  /// Returns the number of classes.
  int classes() const { return classes_; }
  /// Counts samples.
  /// Errors:     kInvalidArgument naming the class that is not among 0 to classes - 1
  void add(std::int64_t truth, std::int64_t predicted, std::int64_t samples = 1);
  /// Adds the counts of another part of the data.
  /// Errors:     kInvalidArgument when the classes differ in number
  void merge(const ConfusionMatrix& other);
  /// Returns how often class `truth` was predicted as `predicted`.
  std::int64_t count(int truth, int predicted) const;
  /// Returns all counts, row by row of truth: merging is an elementwise sum, as an all-reduce of int64 does it.
  std::span<std::int64_t> counts() { return counts_; }
  /// Returns all counts, row by row of truth.
  std::span<const std::int64_t> counts() const { return counts_; }

  /// Returns how many samples were counted.
  std::int64_t samples() const;
  /// Returns the share of samples that was predicted right; 0 without samples.
  double accuracy() const;
  /// Returns the rates of one class.
  ClassRates rates(int of_class) const;
  /// Returns the mean of all classes' F1. A class that occurs neither as truth nor as prediction counts with 0.
  double macro_f1() const;

  friend bool operator==(const ConfusionMatrix&, const ConfusionMatrix&) = default;

 private:
  std::size_t place(std::int64_t truth, std::int64_t predicted) const;

  int classes_;
  std::vector<std::int64_t> counts_;
};

}  // namespace convoy::eval

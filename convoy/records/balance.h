// Weights and draws against rare classes, both defined over the whole training part and never over a rank's share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/base/mutex.h"
#include "convoy/records/dataset.h"

namespace convoy::records {

/// Returns how many of the listed samples each class has.
/// Shapes:     returns [classes]
std::vector<std::int64_t> count_classes(const Dataset& dataset, std::span<const std::int64_t> indexes);

/// Returns a weight for each class so that all classes which are there weigh alike in sum and the mean weight over the
/// counted samples is 1: samples / (classes that are there * samples of the class); 0 for a class that is not there.
/// Shapes:     counts [classes]; returns [classes]
std::vector<float> balanced_class_weights(std::span<const std::int64_t> counts);

/// Says which sample a draw of the sample plan takes, so that all classes are drawn alike: draws [0, samples) of an
/// epoch are dealt to the classes in turn, and each class deals its samples in an order of its own, again and again.
/// A pure function of (seed, epoch, labels of the whole training part); the sample plan and the ledger deal draws.
/// Threads:    any; the latest epochs are cached behind a lock
class DrawMap {
 public:
  /// Maps the draws of a training part with these classes.
  /// Errors:     kInvalidArgument when there is no sample
  DrawMap(std::vector<std::int64_t> labels, int classes, std::uint64_t seed);

  /// Returns the sample numbers that these draws of an epoch take.
  /// Errors:     kInvalidArgument for a draw outside [0, samples)
  std::vector<std::int64_t> samples_of(std::int64_t epoch, std::span<const std::int64_t> draws) const;
  /// Returns how many samples of each class an epoch draws.
  std::vector<std::int64_t> class_counts(std::int64_t epoch) const;

 private:
  std::vector<std::int64_t> order(std::int64_t epoch) const;

  const std::vector<std::int64_t> labels_;
  const int classes_;
  const std::uint64_t seed_;
  mutable Mutex mutex_;
  mutable std::int64_t cached_epoch_ CONVOY_GUARDED_BY(mutex_) = -1;
  mutable std::vector<std::int64_t> cached_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::records

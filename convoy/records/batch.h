// Batches as plain buffers, ready to be seen as tensors: what the loader hands out and what evaluation works through.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/records/dataset.h"

namespace convoy::records {

/// Samples that are worked through together; may be empty.
struct Batch {
  /// The numbers of the samples in the list that they were taken from: for training, what the sample plan numbers.
  std::vector<std::int64_t> sample_ids;
  /// The prepared samples.
  /// Shapes:     [count(), ...sample_shape]
  std::vector<float> values;
  /// The classes.
  /// Shapes:     [count()]
  std::vector<std::int64_t> labels;
  /// How much each sample counts; empty when all count 1.
  /// Shapes:     [count()] or [0]
  std::vector<float> weights;
  /// The shape of one sample.
  std::vector<std::int64_t> sample_shape;

  /// Returns the number of samples.
  std::int64_t count() const { return static_cast<std::int64_t>(sample_ids.size()); }
  /// Returns the bytes that its buffers take, with room that they have to spare.
  std::int64_t memory_bytes() const;
};

/// Where a batch's samples come from.
/// Ownership:  borrows dataset and list
struct BatchSource {
  /// The dataset.
  const Dataset& dataset;
  /// The dataset's sample of each sample number.
  std::span<const std::int64_t> indexes;
};

/// Gives a batch these samples and room for them; prepare_sample fills it. Memory that the batch has is used again.
/// `picked` are the places in the source's list, one for each sample number: the numbers themselves, unless draws are
/// mapped (see DrawMap).
/// Errors:     kInvalidArgument for a place outside the list, or a list that names no sample of the dataset
void begin_batch(const BatchSource& source, std::span<const std::int64_t> sample_ids,
                 std::span<const std::int64_t> picked, Batch& batch);

/// Prepares the sample at one place of a batch that was begun with the same `picked`.
void prepare_sample(const BatchSource& source, std::size_t place, std::span<const std::int64_t> picked,
                    const SampleUse& use, Batch& batch);

/// Returns evaluation batch `number` of fixed batches of `size` samples, the last maybe short: samples in the order of
/// the list, nothing varied, so that it is the same on whatever rank.
/// Errors:     kInvalidArgument when there is no such batch
/// See:        spec::evaluation_batches, spec::evaluation_share
Batch evaluation_batch(const BatchSource& source, std::int64_t number, std::int64_t size);

}  // namespace convoy::records

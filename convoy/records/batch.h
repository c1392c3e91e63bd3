// Batches as plain buffers, ready to be seen as tensors: what the loader hands out and what evaluation works through.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convoy/records/augment.h"
#include "convoy/records/images.h"

namespace convoy::records {

/// Samples that are worked through together; may be empty.
struct Batch {
  /// The numbers of the samples in the list that they were taken from: for training, what the sample plan numbers.
  std::vector<std::int64_t> sample_ids;
  /// The images.
  /// Shapes:     [count(), 1, rows, columns]
  std::vector<float> pixels;
  /// The labels.
  /// Shapes:     [count()]
  std::vector<std::int64_t> labels;
  /// The height of each image.
  std::int64_t rows = 0;
  /// The width of each image.
  std::int64_t columns = 0;

  /// Returns the number of samples.
  std::int64_t count() const { return static_cast<std::int64_t>(sample_ids.size()); }
};

/// Where a batch's samples come from and how they are prepared.
/// Ownership:  borrows the images and the list
struct BatchSource {
  /// The images.
  const ImageSet& images;
  /// The image of each sample number.
  std::span<const std::int64_t> indexes;
  /// The map from pixels to values.
  const Normalisation& normalisation;
};

/// Gives a batch these samples and room for them; prepare_sample fills it. Memory that the batch has is used again.
/// Errors:     kInvalidArgument for a number outside the list, or a list that names no image
void begin_batch(const BatchSource& source, std::span<const std::int64_t> sample_ids, Batch& batch);

/// Prepares the sample at one place of a batch that was begun.
void prepare_sample(const BatchSource& source, std::size_t place, const Variation& variation, Batch& batch);

/// Returns evaluation batch `number` of fixed batches of `size` samples, the last maybe short: samples in the order of
/// the list, nothing varied, so that it is the same on whatever rank.
/// Errors:     kInvalidArgument when there is no such batch
/// See:        spec::evaluation_batches, spec::evaluation_share
Batch evaluation_batch(const BatchSource& source, std::int64_t number, std::int64_t size);

}  // namespace convoy::records

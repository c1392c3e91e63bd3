// Fills batches from images.
#include "convoy/records/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

// Returns the image of a sample.
std::int64_t image_of(const BatchSource& source, std::int64_t sample) {
  const auto samples = static_cast<std::int64_t>(source.indexes.size());
  if (sample < 0 || sample >= samples) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no sample {} of {}", sample, samples));
  }
  const std::int64_t image = source.indexes[static_cast<std::size_t>(sample)];
  if (image < 0 || image >= source.images.count) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sample {} is image {}, but there are {} images", sample, image, source.images.count));
  }
  return image;
}

}  // namespace

void begin_batch(const BatchSource& source, std::span<const std::int64_t> sample_ids, Batch& batch) {
  batch.rows = source.images.rows;
  batch.columns = source.images.columns;
  batch.sample_ids.assign(sample_ids.begin(), sample_ids.end());
  batch.pixels.resize(sample_ids.size() * static_cast<std::size_t>(source.images.image_size()));
  batch.labels.resize(sample_ids.size());
  for (std::size_t i = 0; i < sample_ids.size(); ++i) {
    batch.labels[i] = source.images.labels[static_cast<std::size_t>(image_of(source, sample_ids[i]))];
  }
}

void prepare_sample(const BatchSource& source, std::size_t place, const Variation& variation, Batch& batch) {
  const auto size = static_cast<std::size_t>(source.images.image_size());
  prepare_image(source.images.image(image_of(source, batch.sample_ids.at(place))), batch.rows, batch.columns, variation,
                source.normalisation, std::span(batch.pixels).subspan(place * size, size));
}

Batch evaluation_batch(const BatchSource& source, std::int64_t number, std::int64_t size) {
  const auto samples = static_cast<std::int64_t>(source.indexes.size());
  if (size < 1 || number < 0 || number > samples / size || number * size >= samples) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("there is no evaluation batch {} of {} samples cut by {}", number, samples, size));
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(std::min(size, samples - number * size)));
  std::iota(ids.begin(), ids.end(), number * size);
  Batch batch;
  begin_batch(source, ids, batch);
  for (std::size_t i = 0; i < ids.size(); ++i) prepare_sample(source, i, Variation{}, batch);
  return batch;
}

}  // namespace convoy::records

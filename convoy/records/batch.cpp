// Fills batches from a dataset.
#include "convoy/records/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "convoy/base/error.h"

namespace convoy::records {
namespace {

// Returns the dataset's number of a sample.
std::int64_t index_of(const BatchSource& source, std::int64_t sample) {
  const auto samples = static_cast<std::int64_t>(source.indexes.size());
  if (sample < 0 || sample >= samples) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no sample {} of {}", sample, samples));
  }
  const std::int64_t index = source.indexes[static_cast<std::size_t>(sample)];
  if (index < 0 || index >= source.dataset.count()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("sample {} is number {} of the data, but there are {}", sample,
                                                         index, source.dataset.count()));
  }
  return index;
}

template <typename T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

std::int64_t Batch::memory_bytes() const {
  return static_cast<std::int64_t>(bytes_of(sample_ids) + bytes_of(values) + bytes_of(labels) + bytes_of(weights));
}

void begin_batch(const BatchSource& source, std::span<const std::int64_t> sample_ids,
                 std::span<const std::int64_t> picked, Batch& batch) {
  CONVOY_CHECK(sample_ids.size() == picked.size(), "each sample number needs its place in the list");
  batch.sample_shape = source.dataset.sample_shape();
  batch.sample_ids.assign(sample_ids.begin(), sample_ids.end());
  batch.values.resize(picked.size() * static_cast<std::size_t>(source.dataset.sample_elements()));
  batch.labels.resize(picked.size());
  batch.weights.clear();
  for (std::size_t i = 0; i < picked.size(); ++i) batch.labels[i] = source.dataset.label(index_of(source, picked[i]));
}

void prepare_sample(const BatchSource& source, std::size_t place, std::span<const std::int64_t> picked,
                    const SampleUse& use, Batch& batch) {
  const std::size_t size = batch.values.size() / picked.size();
  source.dataset.prepare(index_of(source, picked[place]), use, std::span(batch.values).subspan(place * size, size));
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
  begin_batch(source, ids, ids, batch);
  for (std::size_t i = 0; i < ids.size(); ++i) prepare_sample(source, i, ids, SampleUse{}, batch);
  return batch;
}

}  // namespace convoy::records

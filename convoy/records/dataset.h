// A dataset: labelled samples in memory that become rows of floats, whatever they were in their files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/eval/slice_column.h"

namespace convoy::records {

/// For what a sample is prepared. Only training samples are varied, by a stream that belongs to (seed, epoch, draw).
struct SampleUse {
  /// Whether the sample is trained on.
  bool training = false;
  /// The sample plan's seed.
  std::uint64_t seed = 0;
  /// The epoch.
  std::int64_t epoch = 0;
  /// The sample's number in the sample plan, so that one image that is drawn twice is varied twice.
  std::int64_t draw = 0;
};

/// The values that evaluation results are cut by: of a column, of time ranges, or the source files.
using SliceColumn = eval::SliceColumn;

/// What a slice column by source file is asked for with, and named.
inline constexpr const char* kSourceFileSlice = "source file";

/// Labelled samples of one kind, numbered from 0.
/// Threads:    any
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Returns the number of samples.
  virtual std::int64_t count() const = 0;
  /// Returns the shape of one prepared sample: [channels, rows, columns] or [features].
  virtual std::vector<std::int64_t> sample_shape() const = 0;
  /// Returns the number of classes; a part of the samples may lack some.
  virtual int classes() const = 0;
  /// Returns the class of a sample.
  virtual std::int64_t label(std::int64_t sample) const = 0;
  /// Returns what identifies a sample to a person, for example "data_batch_1.bin record 17" or "bank.csv line 12".
  virtual std::string key_of(std::int64_t sample) const = 0;
  /// Returns the bytes of a sample as it lay in its file, its label with it: equal for duplicates.
  virtual std::string content_of(std::int64_t sample) const = 0;
  /// Writes a prepared sample.
  /// Shapes:     out [elements of sample_shape()]
  virtual void prepare(std::int64_t sample, const SampleUse& use, std::span<float> out) const = 0;
  /// Returns the names of the classes; "0", "1" ... where the files name none.
  virtual std::vector<std::string> class_names() const;
  /// Returns, for two classes, the one whose scores are ranked; -1 for any other number of classes.
  virtual int positive_class() const { return classes() == 2 ? 1 : -1; }
  /// Returns a name for each element of a prepared sample; empty for images.
  virtual std::vector<std::string> feature_names() const { return {}; }
  /// Returns what results on a part are cut by: the columns of these names (a recipe's data.slices), the time column as
  /// four ranges with as many of the part's samples, and last the source files where the data has several.
  /// Errors:     kInvalidArgument for a name that the data does not have, or a column with more than 64 values
  virtual std::vector<SliceColumn> slices(std::span<const std::string> names,
                                          std::span<const std::int64_t> part) const = 0;

  /// Returns how many numbers one prepared sample has.
  std::int64_t sample_elements() const;
};

}  // namespace convoy::records

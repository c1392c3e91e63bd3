// The data of a run: what a recipe's [data] names, read, divided, and ready to be prepared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/records/dataset.h"
#include "convoy/records/split.h"
#include "convoy/spec/recipe.h"

namespace convoy::records {

/// A part of the data that is evaluated.
struct DataPart {
  /// The dataset.
  std::shared_ptr<const Dataset> dataset;
  /// Its samples that belong to the part, in the order of evaluation.
  std::vector<std::int64_t> indexes;
};

/// The data of a run.
/// Threads:    one caller at a time
class RunData {
 public:
  /// Takes the training set, its split, and what reads the test part when it is asked for.
  RunData(std::shared_ptr<const Dataset> training_set, Split split, std::function<DataPart()> open_test);

  /// Returns the dataset of training and validation, encoded and normalised by the training part alone.
  const Dataset& training_set() const { return *training_set_; }
  /// Returns which of its samples are in which part.
  const Split& split() const { return split_; }
  /// Returns the validation part; may be empty.
  DataPart validation() const { return {training_set_, split_.validation}; }
  /// Returns the test part, which is read at the first call: touched once, when training is over.
  /// Errors:     as open_data
  const DataPart& test();

 private:
  std::shared_ptr<const Dataset> training_set_;
  Split split_;
  std::function<DataPart()> open_test_;
  DataPart test_;
};

/// Reads the training files that a recipe names and divides them; encoders and normalisation are fitted on the training
/// part alone. The split's record at `record_path` is used where it is there; where it is not, the split is made, and
/// recorded if `may_write`; an empty path keeps no record.
/// Ownership:  borrows `files` until the test part was read
/// Collective: Local. One rank at a time may make the record: let the first rank do so, then the others read it
/// Errors:     kInvalidArgument, one line naming file, place and recipe key, for files that are missing or wrong and for
///             parts that would be empty; what load_or_make_split throws
RunData open_data(const spec::DataRecipe& recipe, Files& files, const std::string& record_path, bool may_write);

/// Returns what a recipe says about the division of this many samples.
SplitOptions split_options(const spec::DataRecipe& recipe, std::int64_t samples);

/// Returns the split of a record that is there; else makes it, and records it where there is a path and it may be
/// written.
/// Errors:     as load_or_make_split
Split divide(Files& files, const std::string& record_path, bool may_write, const SplitOptions& options,
             const std::string& source_digest, const SplitKeys& keys = {});

}  // namespace convoy::records

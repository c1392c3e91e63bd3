// The task: the data that a recipe names, divided, and its batches as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/params/model.h"
#include "convoy/records/loader.h"
#include "convoy/records/open/run_data.h"
#include "convoy/spec/recipe.h"

namespace convoy::train {

/// Returns a plain batch as tensors of the type; an empty one has an undefined input.
/// Ownership:  float32 input, float32 weights and the classes borrow the batch's memory
params::Batch to_tensors(records::Batch& batch, torch::ScalarType type);

/// The data of a run.
/// Ownership:  owns samples and split; loaders borrow them. Class weights and draws are those of the whole training part
class Task {
 public:
  /// Reads the training set and its split; the split's record lies in the run directory.
  /// Collective: all ranks (rank 0 makes the record)
  /// Errors:     what records::open_data throws
  Task(const spec::Recipe& recipe, Files& files, const std::string& run_dir, comm::Group& group);

  /// Returns the number of training samples.
  std::int64_t samples() const { return static_cast<std::int64_t>(data_->split().training.size()); }
  /// Returns the number of classes.
  std::int64_t classes() const { return data_->training_set().classes(); }
  /// Returns the shape of one sample.
  std::vector<std::int64_t> sample_shape() const { return data_->training_set().sample_shape(); }

  /// Starts to load a rank's batches of steps [first, end); `reader` is read in place of the training set, as a view of
  /// it.
  std::unique_ptr<records::Loader> load(const spec::SamplePlan& plan, spec::ReplicaRange replicas, std::int64_t first,
                                        std::int64_t end, const records::Dataset* reader = nullptr) const;
  /// Returns where training samples come from.
  records::BatchSource training_source() const { return {data_->training_set(), data_->split().training}; }
  /// Returns how many samples of each class an epoch draws: those of the training part, unless the recipe resamples.
  std::vector<std::int64_t> class_counts(std::int64_t epoch) const;
  /// Returns the names of the classes.
  std::vector<std::string> class_names() const { return data_->training_set().class_names(); }
  /// Returns the validation part.
  records::DataPart validation() const { return data_->validation(); }
  /// Reads and returns the test set: touched once, when training is over.
  const records::DataPart& test() { return data_->test(); }

 private:
  const spec::Recipe recipe_;
  std::optional<records::RunData> data_;
  std::vector<std::int64_t> training_counts_;
  std::vector<float> class_weights_;
  std::shared_ptr<const records::DrawMap> draws_;
};

}  // namespace convoy::train

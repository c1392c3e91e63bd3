// The image task: official image files, their split, and the batches of training and evaluation as tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/comm/group.h"
#include "convoy/params/model.h"
#include "convoy/records/augment.h"
#include "convoy/records/images.h"
#include "convoy/records/loader.h"
#include "convoy/records/split.h"
#include "convoy/spec/recipe.h"

namespace convoy::train {

/// Returns a plain batch as tensors of the type; an empty one has an undefined input.
/// Ownership:  float32 input and the classes borrow the batch's memory
params::Batch to_tensors(records::Batch& batch, torch::ScalarType type);

/// A part of the data that is evaluated.
struct EvaluationPart {
  /// Where the images are.
  const records::ImageSet* images = nullptr;
  /// The images of the part, in the order of evaluation.
  std::vector<std::int64_t> indexes;
};

/// The data of a run.
/// Ownership:  owns images and split; loaders borrow them
class ImageTask {
 public:
  /// Reads the training set and its split; the split's record lies in the run directory.
  /// Collective: all ranks (rank 0 makes the record)
  /// Errors:     what records::load_train and records::load_or_make_split throw
  ImageTask(const spec::DataRecipe& recipe, Files& files, const std::string& run_dir, comm::Group& group);

  /// Returns the number of training samples, classes, and the shape of one sample.
  std::int64_t samples() const { return static_cast<std::int64_t>(split_.training.size()); }
  std::int64_t classes() const { return train_.classes(); }
  std::vector<std::int64_t> sample_shape() const { return {1, train_.rows, train_.columns}; }

  /// Starts to load a rank's batches of steps [first, end).
  std::unique_ptr<records::Loader> load(const spec::SamplePlan& plan, spec::ReplicaRange replicas, std::int64_t first,
                                        std::int64_t end) const;
  /// Returns the validation part.
  EvaluationPart validation() const { return {&train_, split_.validation}; }
  /// Reads and returns the test set: touched once, when training is over.
  EvaluationPart test();
  /// Returns evaluation batch `number` of a part.
  records::Batch evaluation_batch(const EvaluationPart& part, std::int64_t number, std::int64_t size) const;

 private:
  const spec::DataRecipe recipe_;
  Files& files_;
  records::ImageSet train_;
  records::Split split_;
  std::optional<records::Normalisation> normalisation_;
  std::optional<records::ImageSet> test_;
};

}  // namespace convoy::train

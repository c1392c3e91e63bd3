#include "convoy/train/image_task.h"

#include <numeric>

#include "convoy/base/error.h"
#include "convoy/elastic/checkpoint/agree.h"
#include "convoy/records/idx.h"

namespace convoy::train {

params::Batch to_tensors(records::Batch& batch, torch::ScalarType type) {
  params::Batch tensors;
  if (batch.count() == 0) return tensors;
  tensors.input = torch::from_blob(batch.pixels.data(), {batch.count(), 1, batch.rows, batch.columns}, torch::kFloat32);
  if (type != torch::kFloat32) tensors.input = tensors.input.to(type);
  tensors.target = torch::from_blob(batch.labels.data(), {batch.count()}, torch::kInt64);
  return tensors;
}

ImageTask::ImageTask(const spec::DataRecipe& recipe, Files& files, const std::string& run_dir, comm::Group& group)
    : recipe_(recipe), files_(files), train_(records::load_train(files, recipe.path)) {
  records::SplitOptions options;
  options.samples = train_.count;
  options.validation = recipe.validation;
  options.limit = recipe.limit;
  options.seed = static_cast<std::uint64_t>(recipe.split_seed);
  const std::string source = records::digest(train_);
  const auto read = [&] { split_ = records::load_or_make_split(files, run_dir + "/split.json", options, source); };
  // Rank 0 makes the record where there is none; the others read what it made.
  elastic::together(group, "dividing the data", [&] {
    if (group.rank() == 0) read();
  });
  if (group.rank() != 0) read();
  normalisation_ = records::measure_normalisation(train_, split_.training);
}

std::unique_ptr<records::Loader> ImageTask::load(const spec::SamplePlan& plan, spec::ReplicaRange replicas,
                                                 std::int64_t first, std::int64_t end) const {
  records::LoaderOptions options;
  options.replicas = replicas;
  options.first_step = first;
  options.end_step = end;
  options.augment.shift = recipe_.shift;
  options.augment.flip = recipe_.flip;
  options.prefetch = recipe_.prefetch;
  const records::BatchSource source{train_, split_.training, *normalisation_};
  return std::make_unique<records::Loader>(source, plan, options);
}

EvaluationPart ImageTask::test() {
  if (!test_) test_ = records::load_test(files_, recipe_.path);
  EvaluationPart part{&*test_, std::vector<std::int64_t>(static_cast<std::size_t>(test_->count))};
  std::iota(part.indexes.begin(), part.indexes.end(), 0);
  return part;
}

records::Batch ImageTask::evaluation_batch(const EvaluationPart& part, std::int64_t number, std::int64_t size) const {
  const records::BatchSource source{*part.images, part.indexes, *normalisation_};
  return records::evaluation_batch(source, number, size);
}

}  // namespace convoy::train

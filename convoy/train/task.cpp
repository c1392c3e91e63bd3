#include "convoy/train/task.h"

#include "convoy/elastic/checkpoint/agree.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/records/balance.h"

namespace convoy::train {

params::Batch to_tensors(records::Batch& batch, torch::ScalarType type) {
  const observe::MemoryScope scope(observe::MemoryCategory::kBatch);
  params::Batch tensors;
  if (batch.count() == 0) return tensors;
  std::vector<std::int64_t> shape{batch.count()};
  shape.insert(shape.end(), batch.sample_shape.begin(), batch.sample_shape.end());
  tensors.input = torch::from_blob(batch.values.data(), shape, torch::kFloat32);
  if (type != torch::kFloat32) tensors.input = tensors.input.to(type);
  tensors.target = torch::from_blob(batch.labels.data(), {batch.count()}, torch::kInt64);
  if (!batch.weights.empty()) {
    tensors.weight = torch::from_blob(batch.weights.data(), {batch.count()}, torch::kFloat32).to(type);
  }
  return tensors;
}

Task::Task(const spec::Recipe& recipe, Files& files, const std::string& run_dir, comm::Group& group)
    : recipe_(recipe) {
  const auto open = [&] { data_ = records::open_data(recipe.data, files, run_dir + "/split.json", group.rank() == 0); };
  // Rank 0 makes the split's record where there is none; the others read what it made.
  elastic::together(group, "dividing the data", [&] {
    if (group.rank() == 0) open();
  });
  if (group.rank() != 0) open();
  const records::Dataset& all = data_->training_set();
  const std::vector<std::int64_t>& training = data_->split().training;
  training_counts_ = records::count_classes(all, training);
  if (recipe.train.class_weights == "balanced") class_weights_ = records::balanced_class_weights(training_counts_);
  if (recipe.data.resample == "balanced") {
    std::vector<std::int64_t> labels;
    for (const std::int64_t sample : training) labels.push_back(all.label(sample));
    draws_ = std::make_shared<const records::DrawMap>(std::move(labels), all.classes(),
                                                      static_cast<std::uint64_t>(recipe.task.seed));
  }
}

std::vector<std::int64_t> Task::class_counts(std::int64_t epoch) const {
  return draws_ ? draws_->class_counts(epoch) : training_counts_;
}

std::unique_ptr<records::Loader> Task::load(const spec::SamplePlan& plan, spec::ReplicaRange replicas,
                                            std::int64_t first, std::int64_t end, const records::Dataset* reader) const {
  records::LoaderOptions options;
  options.replicas = replicas;
  options.first_step = first;
  options.end_step = end;
  options.prefetch = recipe_.data.prefetch;
  options.class_weights = class_weights_;
  options.draws = draws_;
  const records::BatchSource source = training_source();
  return std::make_unique<records::Loader>(
      records::BatchSource{reader != nullptr ? *reader : source.dataset, source.indexes}, plan, options);
}

}  // namespace convoy::train

#include "convoy/train/trainer.h"

#include <algorithm>

#include "convoy/base/random.h"
#include "convoy/spec/rate_schedule.h"

namespace convoy::train {
namespace {

parallel::DataParallelOptions parallel_options(const spec::Recipe& recipe, int replicas,
                                               const std::vector<spec::ReplicaRange>& owners) {
  parallel::DataParallelOptions options;
  options.replicas = replicas;
  options.owners = owners;
  options.bucket_bytes = recipe.parallel.known_bucket_bytes();
  options.overlap = recipe.parallel.overlap;
  options.divide_update = recipe.parallel.divide_update;
  options.buffer_merge = parallel::to_buffer_merge(recipe.replicas.buffer_merge);
  options.unused = parallel::to_unused_parameters(recipe.parallel.unused_parameters);
  options.seed = static_cast<std::uint64_t>(recipe.task.seed);
  return options;
}

}  // namespace

int replica_count(const spec::Recipe& recipe, int ranks) {
  return recipe.replicas.mode == "off" ? ranks : static_cast<int>(recipe.replicas.count);
}

spec::SamplePlanOptions plan_options(const spec::Recipe& recipe, std::int64_t samples, int replicas) {
  spec::SamplePlanOptions options;
  options.samples = samples;
  options.global_batch = recipe.train.global_batch;
  options.replicas = replicas;
  options.accumulation = static_cast<int>(recipe.train.accumulation);
  options.drop_last = recipe.train.drop_last;
  options.seed = static_cast<std::uint64_t>(recipe.task.seed);
  return options;
}

std::unique_ptr<params::Model> make_model(const spec::Recipe& recipe, const Task& task, const zoo::Registry& models) {
  torch::manual_seed(stream_seed(StreamPurpose::kInitialisation, {static_cast<std::uint64_t>(recipe.task.seed)}));
  auto model = models.make({recipe.model, task.sample_shape(), task.classes()});
  model->train(true);
  return model;
}

std::vector<params::Batch> to_tensors(records::ReplicaBatches& replica, torch::ScalarType type) {
  std::vector<params::Batch> tensors;
  for (records::Batch& batch : replica.micro_batches) tensors.push_back(to_tensors(batch, type));
  return tensors;
}

double clip_factor(const spec::TrainRecipe& recipe, double gradient_norm) {
  return recipe.clip_norm > 0 ? std::min(1.0, recipe.clip_norm / (gradient_norm + 1e-6)) : 1.0;
}

Trainer::Trainer(const spec::Recipe& recipe, std::int64_t samples, comm::Group& group,
                 std::unique_ptr<params::Model> model, const std::vector<spec::ReplicaRange>& owners)
    : recipe_(recipe),
      plan_(plan_options(recipe, samples, replica_count(recipe, group.size()))),
      model_(std::move(model)),
      parallel_(*model_, group, parallel_options(recipe, replica_count(recipe, group.size()), owners)),
      optimizer_(parallel_.space(), params::OptimizerOptions::from(recipe.train)),
      total_steps_(recipe.train.steps > 0 ? recipe.train.steps : recipe.train.epochs * plan_.steps_per_epoch()) {
  optimizer_.set_owner(group.rank() == 0);
}

parallel::StepResult Trainer::gradient(std::int64_t step, records::StepBatch& input, Duration before) {
  std::vector<std::vector<params::Batch>> batches;
  for (records::ReplicaBatches& replica : input.replicas) batches.push_back(to_tensors(replica, type()));
  return parallel_.step(step, batches, before);
}

double Trainer::update(std::int64_t step, const parallel::StepResult& result) {
  const double rate = spec::learning_rate(recipe_.train, {step, plan_.samples_before(step), result.count, total_steps_,
                                                          plan_.samples_before(total_steps_)});
  params::GradientSums sums = result.gradient;
  sums.scale.clip = clip_factor(recipe_.train, result.gradient_norm);
  optimizer_.update(sums, rate);
  return rate;
}

}  // namespace convoy::train

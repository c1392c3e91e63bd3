// The trainer: model, strategy and optimizer of a recipe, and one step in its two halves.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/model.h"
#include "convoy/params/optimizer.h"
#include "convoy/records/loader.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/sample_plan.h"
#include "convoy/train/task.h"
#include "convoy/zoo/registry.h"

namespace convoy::train {

/// Returns how many logical replicas a run has: the recipe's, or one for each rank where they are off.
int replica_count(const spec::Recipe& recipe, int ranks);

/// Returns what decides a recipe's sample plan.
spec::SamplePlanOptions plan_options(const spec::Recipe& recipe, std::int64_t samples, int replicas);

/// Builds the recipe's model for a task, with initial parameters that depend on the recipe's seed alone.
/// Errors:     what zoo::Registry::make throws
std::unique_ptr<params::Model> make_model(const spec::Recipe& recipe, const Task& task, const zoo::Registry& models);

/// Returns one replica's micro-batches as tensors of the type.
/// Ownership:  borrows the batches' memory
std::vector<params::Batch> to_tensors(records::ReplicaBatches& replica, torch::ScalarType type);

/// Returns the factor that brings a gradient of this norm to the recipe's largest one, a little below it as
/// torch::nn::utils::clip_grad_norm_ does; 1 where the recipe does not clip.
double clip_factor(const spec::TrainRecipe& recipe, double gradient_norm);

/// Trains a model step by step; what a run, a probe and a profile share.
/// Threads:    one caller at a time
class Trainer {
 public:
  /// Deals the replicas out as `owners` says, or evenly where it is empty.
  /// Collective: all ranks of the group
  /// Ownership:  owns the model; borrows the recipe and the group
  /// Errors:     what parallel::DataParallel throws
  Trainer(const spec::Recipe& recipe, std::int64_t samples, comm::Group& group, std::unique_ptr<params::Model> model,
          const std::vector<spec::ReplicaRange>& owners = {});

  /// Returns the plan that says which sample goes where.
  const spec::SamplePlan& plan() const { return plan_; }
  /// Returns the number of steps that the recipe asks for.
  std::int64_t total_steps() const { return total_steps_; }
  /// Returns the model.
  params::Model& model() { return *model_; }
  /// Returns the strategy.
  parallel::DataParallel& parallel() { return parallel_; }
  /// Returns the optimizer.
  params::Optimizer& optimizer() { return optimizer_; }
  /// Returns everything that a checkpoint holds.
  std::vector<spec::Stateful*> state() { return {&parallel_, &optimizer_}; }
  /// Returns the type of parameters and input.
  torch::ScalarType type() { return params::to_scalar_type(parallel_.space().dtype()); }

  /// The first half of a step: forward and backward of this rank's replicas, and the whole gradient of all ranks.
  /// `before` is how long this rank took to get its input.
  /// Collective: all ranks
  /// Errors:     what parallel::DataParallel::step throws
  parallel::StepResult gradient(std::int64_t step, records::StepBatch& input, Duration before = {});
  /// The second half: clips and updates; returns the learning rate.
  double update(std::int64_t step, const parallel::StepResult& result);

 private:
  const spec::Recipe& recipe_;
  const spec::SamplePlan plan_;
  const std::unique_ptr<params::Model> model_;
  parallel::DataParallel parallel_;
  params::Optimizer optimizer_;
  const std::int64_t total_steps_;
};

}  // namespace convoy::train

// What the keys of a recipe demand of each other, as data: the reader checks it and the page prints it.
#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/recipe/data_column.h"
#include "convoy/spec/recipe/recipe_schema.h"

namespace convoy::spec {
namespace {

using Demands = std::vector<RecipeDemand>;

// Whether keys that only some choice of another key reads still have their defaults.
bool adam_untouched(const TrainRecipe& train) {
  const TrainRecipe defaults;
  return train.beta1 == defaults.beta1 && train.beta2 == defaults.beta2 && train.epsilon == defaults.epsilon;
}

bool decays_to_the_end(const TrainRecipe& train) { return train.schedule == "cosine" || train.schedule == "linear"; }

Demands length_demands() {
  return {
      {{"train.epochs", "train.steps"},
       "a run needs an end: epochs or steps must be above 0",
       [](const Recipe& recipe) { return recipe.train.epochs > 0 || recipe.train.steps > 0; }},
      {{"train.target_metric", "train.target"},
       "a target metric needs a target above 0",
       [](const Recipe& recipe) { return recipe.train.target_metric.empty() || recipe.train.target > 0.0; }},
      {{"train.target", "train.target_metric"},
       "a target needs a target metric",
       [](const Recipe& recipe) { return !recipe.train.target_metric.empty() || recipe.train.target == 0.0; }},
      {{"train.target", "train.target_metric"},
       "a target for accuracy or macro_f1 is at most 1",
       [](const Recipe& recipe) {
         const std::string& metric = recipe.train.target_metric;
         return (metric != "accuracy" && metric != "macro_f1") || recipe.train.target <= 1.0;
       }},
      {{"train.target_metric", "data.validation"},
       "a target metric needs validation samples to measure it on",
       [](const Recipe& recipe) { return recipe.train.target_metric.empty() || recipe.data.validation > 0; }},
      {{"train.target_metric", "train.evaluate_every"},
       "a target metric needs evaluations during the run: evaluate_every must be above 0",
       [](const Recipe& recipe) { return recipe.train.target_metric.empty() || recipe.train.evaluate_every > 0; }},
  };
}

bool is_table(const Recipe& recipe) { return recipe.data.format == "csv"; }

int declared(const Recipe& recipe, ColumnKind kind) { return count_columns(recipe.data.columns, kind); }

Demands table_demands() {
  return {
      {{"data.columns", "data.format"},
       "the format csv needs its columns declared, and no other format has any",
       [](const Recipe& recipe) { return is_table(recipe) != recipe.data.columns.empty(); }},
      {{"data.columns"},
       "exactly one column is the target",
       [](const Recipe& recipe) { return !is_table(recipe) || declared(recipe, ColumnKind::kTarget) == 1; }},
      {{"data.columns"},
       "at least one column must be a number or a category",
       [](const Recipe& recipe) {
         return !is_table(recipe) || declared(recipe, ColumnKind::kNumber) + declared(recipe, ColumnKind::kCategory) > 0;
       }},
      {{"data.columns"},
       "at most one column is the group, and at most one the time",
       [](const Recipe& recipe) {
         return declared(recipe, ColumnKind::kGroup) <= 1 && declared(recipe, ColumnKind::kTime) <= 1;
       }},
      {{"data.split", "data.columns"},
       "a split by group needs a group column, one by time a time column",
       [](const Recipe& recipe) {
         return (recipe.data.split != "group" || declared(recipe, ColumnKind::kGroup) == 1) &&
                (recipe.data.split != "time" || declared(recipe, ColumnKind::kTime) == 1);
       }},
      {{"data.path", "data.format"},
       "the formats cifar10 and csv need a path",
       [](const Recipe& recipe) { return recipe.data.format == "idx" || !recipe.data.path.empty(); }},
      {{"data.missing", "data.positive", "data.test_path", "data.format"},
       "missing, positive and test_path belong to the format csv: leave them at their defaults",
       [](const Recipe& recipe) {
         const DataRecipe& data = recipe.data;
         return is_table(recipe) || (data.missing == DataRecipe{}.missing && data.positive.empty() &&
                                     data.test_path.empty() && data.delimiter == DataRecipe{}.delimiter);
       }},
      {{"data.shift", "data.flip", "data.format"},
       "only images can be shifted or flipped",
       [](const Recipe& recipe) { return !is_table(recipe) || (recipe.data.shift == 0 && !recipe.data.flip); }},
  };
}

Demands split_demands() {
  return {
      {{"data.split", "data.format"},
       "image files have the split official",
       [](const Recipe& recipe) { return is_table(recipe) || recipe.data.split == "official"; }},
      {{"data.split", "data.test_path"},
       "the split official of a csv needs test_path",
       [](const Recipe& recipe) {
         return !is_table(recipe) || recipe.data.split != "official" || !recipe.data.test_path.empty();
       }},
      {{"data.test", "data.test_path"},
       "the test part comes from official files or is set apart: a csv without test_path needs test above 0, all others "
       "0",
       [](const Recipe& recipe) {
         const bool own_files = !is_table(recipe) || !recipe.data.test_path.empty();
         return own_files == (recipe.data.test == 0);
       }},
      {{"data.resample", "train.class_weights"},
       "resampling and class weights both make up for rare classes: use one of them",
       [](const Recipe& recipe) { return recipe.data.resample == "none" || recipe.train.class_weights == "none"; }},
  };
}

Demands batch_demands() {
  return {
      {{"train.global_batch", "replicas.count", "train.accumulation"},
       "each micro-batch of each replica needs a sample: replicas times accumulation must not exceed the global batch",
       [](const Recipe& recipe) {
         const std::int64_t replicas = recipe.replicas.mode == "on" ? recipe.replicas.count : 1;
         return replicas * recipe.train.accumulation <= recipe.train.global_batch;
       }},
      {{"parallel.share", "replicas.mode"},
       "what share = \"auto\" deals out are replicas: with mode = \"off\" each rank has its one shard",
       [](const Recipe& recipe) { return recipe.parallel.share == "even" || recipe.replicas.mode == "on"; }},
      {{"model.sync_batch_norm", "model.batch_norm"},
       "batch norm over all replicas is batch norm: sync_batch_norm needs batch_norm",
       [](const Recipe& recipe) { return !recipe.model.sync_batch_norm || recipe.model.batch_norm; }},
      {{"data.limit", "train.global_batch", "train.drop_last"},
       "with drop_last, the training part must hold at least one global batch",
       [](const Recipe& recipe) {
         return !recipe.train.drop_last || recipe.data.limit == 0 || recipe.data.limit >= recipe.train.global_batch;
       }},
  };
}

Demands model_demands() {
  return {
      {{"model.script", "model.name"},
       "a script takes the place of a named model: leave name at its default",
       [](const Recipe& recipe) { return recipe.model.script.empty() || recipe.model.name == ModelRecipe{}.name; }},
  };
}

Demands optimizer_demands() {
  return {
      {{"train.momentum", "train.optimizer"},
       "only the optimizer sgd has momentum",
       [](const Recipe& recipe) { return recipe.train.optimizer == "sgd" || recipe.train.momentum == 0.0; }},
      {{"train.dampening", "train.optimizer"},
       "only the optimizer sgd has dampening",
       [](const Recipe& recipe) { return recipe.train.optimizer == "sgd" || recipe.train.dampening == 0.0; }},
      {{"train.nesterov", "train.optimizer"},
       "only the optimizer sgd has Nesterov's momentum",
       [](const Recipe& recipe) { return recipe.train.optimizer == "sgd" || !recipe.train.nesterov; }},
      {{"train.nesterov", "train.momentum", "train.dampening"},
       "Nesterov's momentum needs momentum above 0 and dampening 0",
       [](const Recipe& recipe) {
         return !recipe.train.nesterov || (recipe.train.momentum > 0.0 && recipe.train.dampening == 0.0);
       }},
      {{"train.dampening", "train.momentum"},
       "dampening needs momentum above 0",
       [](const Recipe& recipe) { return recipe.train.dampening == 0.0 || recipe.train.momentum > 0.0; }},
      {{"train.beta1", "train.beta2", "train.epsilon", "train.optimizer"},
       "beta1, beta2 and epsilon belong to the optimizers adam and adamw: leave them at their defaults",
       [](const Recipe& recipe) { return recipe.train.optimizer != "sgd" || adam_untouched(recipe.train); }},
  };
}

Demands schedule_demands() {
  return {
      {{"train.schedule", "train.schedule_every"},
       "the schedule step needs schedule_every above 0",
       [](const Recipe& recipe) { return recipe.train.schedule != "step" || recipe.train.schedule_every > 0; }},
      {{"train.schedule_every", "train.schedule"},
       "only the schedule step reads schedule_every",
       [](const Recipe& recipe) { return recipe.train.schedule == "step" || recipe.train.schedule_every == 0; }},
      {{"train.schedule_factor", "train.schedule"},
       "only the schedule step reads schedule_factor: leave it at its default",
       [](const Recipe& recipe) {
         return recipe.train.schedule == "step" || recipe.train.schedule_factor == TrainRecipe{}.schedule_factor;
       }},
      {{"train.final_fraction", "train.schedule"},
       "only the schedules cosine and linear read final_fraction",
       [](const Recipe& recipe) { return decays_to_the_end(recipe.train) || recipe.train.final_fraction == 0.0; }},
  };
}

Demands comm_demands() {
  return {
      {{"comm.interfaces", "comm.transport"},
       "only the transport gloo reads interfaces",
       [](const Recipe& recipe) { return recipe.comm.transport == "gloo" || recipe.comm.interfaces.empty(); }},
      {{"comm.interfaces"},
       "at most 8 interfaces are used",
       [](const Recipe& recipe) { return recipe.comm.interfaces.size() <= 8; }},
      {{"comm.algorithm", "replicas.mode"},
       "with replicas, results do not depend on the number of ranks, so only algorithms whose sums do not are taken: "
       "ordered_exchange, ordered_direct and ordered_hierarchical",
       [](const Recipe& recipe) {
         const std::string& name = recipe.comm.algorithm;
         return recipe.replicas.mode == "off" || name == "auto" || find_algorithm("all_reduce", name).ordered;
       }},
  };
}

Demands all_demands() {
  Demands all;
  for (const auto& part : {length_demands(), table_demands(), split_demands(), batch_demands(), model_demands(), optimizer_demands(), schedule_demands(), comm_demands()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

std::span<const RecipeDemand> recipe_demands() {
  static const Demands demands = all_demands();
  return demands;
}

}  // namespace convoy::spec

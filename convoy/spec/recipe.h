// The recipe: everything about a run, said before it runs. One struct per TOML table, every field with its default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/spec/data_recipe.h"

namespace convoy::spec {

/// `[task]`: what the run is.
struct TaskRecipe {
  /// Names the run in reports.
  std::string name = "unnamed";
  /// Seeds everything that is random: initial weights, sample order, augmentation, dropout.
  std::int64_t seed = 1;
  /// For the training plan, in words: what the user alone can say about the task.
  std::string source, prediction_moment, label, features, permitted_repeats;
  friend bool operator==(const TaskRecipe&, const TaskRecipe&) = default;
};

/// `[model]`: what is trained.
struct ModelRecipe {
  /// The name in the registry: "softmax", "mlp", "cnn", "resnet20", or one that the program registered.
  std::string name = "softmax";
  /// A TorchScript module's file, trained as it is in place of a named model; "" for none.
  std::string script;
  /// The widths of the MLP's hidden layers.
  std::vector<std::int64_t> hidden = {256};
  /// The channels of the CNN's convolutions; each second one is followed by pooling.
  std::vector<std::int64_t> channels = {32, 32, 64, 64};
  /// The share of activations that dropout removes.
  double dropout = 0.0;
  /// Whether convolutions are followed by batch norm.
  bool batch_norm = true;
  /// Whether batch norm is over the whole batch, and not over each replica's part.
  bool sync_batch_norm = false;
  /// The type of parameters and gradients: "float32" or "float64".
  std::string dtype = "float32";
  friend bool operator==(const ModelRecipe&, const ModelRecipe&) = default;
};

/// `[train]`: how it is trained.
struct TrainRecipe {
  /// Stops after this many passes over the training part; 0 leaves it to `steps`.
  std::int64_t epochs = 1;
  /// Stops after this many optimizer steps, whatever `epochs` says; 0 leaves it to `epochs`.
  std::int64_t steps = 0;
  /// Stops once this validation metric reaches `target`: "", "accuracy", "macro_f1" or "loss".
  std::string target_metric;
  /// The value to reach (for the loss: to fall to).
  double target = 0.0;
  /// Samples in one optimizer step, over all replicas and micro-batches.
  std::int64_t global_batch = 128;
  /// Micro-batches that each replica works through in one step.
  std::int64_t accumulation = 1;
  /// Whether the short last batch of an epoch is left out.
  bool drop_last = false;
  /// "sgd", "adam" or "adamw".
  std::string optimizer = "sgd";
  /// The highest learning rate.
  double learning_rate = 0.1;
  /// SGD: momentum, and its dampening.
  double momentum = 0.0, dampening = 0.0;
  /// SGD: Nesterov's momentum.
  bool nesterov = false;
  /// Weight decay: added to the gradient (sgd, adam) or taken from the weights (adamw).
  double weight_decay = 0.0;
  /// Adam: decay of the first and of the second moment.
  double beta1 = 0.9, beta2 = 0.999;
  /// Adam: added to the root of the second moment.
  double epsilon = 1e-8;
  /// "constant", "step", "cosine" or "linear".
  std::string schedule = "constant";
  /// The rate rises linearly over this much from 0; see `schedule_unit`.
  std::int64_t warmup = 0;
  /// What `warmup` and `schedule_every` count: "steps" or "samples".
  std::string schedule_unit = "steps";
  /// Schedule "step": the rate falls each time this much is done; and the factor of each fall.
  std::int64_t schedule_every = 0;
  double schedule_factor = 0.1;
  /// Schedules "cosine" and "linear": the share of the rate that is left at the end.
  double final_fraction = 0.0;
  /// "none", or "balanced": samples of rare classes weigh more, all classes alike in sum.
  std::string class_weights = "none";
  /// The largest allowed norm of the whole gradient; 0 does not clip.
  double clip_norm = 0.0;
  /// Evaluates on the validation part after each so many epochs; 0 only at the end.
  std::int64_t evaluate_every = 1;
  /// Samples in one evaluation batch; part of the result, since kernels round by batch size.
  std::int64_t evaluation_batch = 500;
  friend bool operator==(const TrainRecipe&, const TrainRecipe&) = default;
};

/// `[replicas]`: the fixed division of the global batch that makes results independent of the number of ranks.
struct ReplicasRecipe {
  /// "on": `count` logical replicas, dealt out over any number of ranks. "off": one shard a rank, the classic way.
  std::string mode = "on";
  /// How many replicas share the global batch.
  std::int64_t count = 2;
  /// How buffers of the replicas (running statistics) become one for evaluation: "mean" or "first".
  std::string buffer_merge = "mean";
  friend bool operator==(const ReplicasRecipe&, const ReplicasRecipe&) = default;
};

/// The bytes of a bucket where neither the recipe nor a calibration says anything.
inline constexpr std::int64_t kBuiltInBucketBytes = 4 << 20;

/// `[parallel]`: how ranks share the work.
struct ParallelRecipe {
  /// The strategy: "data".
  std::string strategy = "data";
  /// Gradients are exchanged in buckets of about this many bytes; 0: by the machine's calibration.
  std::int64_t bucket_bytes = 0;
  /// Whether buckets are exchanged while backward goes on.
  bool overlap = true;
  /// Whether the ranks of a host have the parameters once, in shared memory, and each updates a share of them.
  bool divide_update = true;
  /// Parameters that a replica did not use in a step: "allow" counts them as zero for it, "refuse" ends the run.
  std::string unused_parameters = "allow";
  /// How replicas are dealt out: "even", or "auto", by how fast each rank proves before the first step.
  std::string share = "even";
  /// Compute threads of each rank; part of the result, since kernels split work by thread.
  std::int64_t threads = 1;
  /// Returns the bytes of a bucket where nobody looks at a calibration.
  std::int64_t known_bucket_bytes() const { return bucket_bytes > 0 ? bucket_bytes : kBuiltInBucketBytes; }
  friend bool operator==(const ParallelRecipe&, const ParallelRecipe&) = default;
};

/// `[comm]`: how bytes move.
struct CommRecipe {
  /// The transport: "shared_memory" (ranks of one host) or "gloo" (TCP, between hosts).
  std::string transport = "shared_memory";
  /// Of gloo: network interfaces, addresses or host names of each host, one connection for each.
  std::vector<std::string> interfaces;
  /// Every wait for another rank ends after this many seconds.
  double timeout_s = 60.0;
  /// Messages are cut into chunks of this many bytes.
  std::int64_t chunk_bytes = 1 << 18;
  /// How gradients are summed: "auto", or an algorithm of all_reduce (spec::algorithms).
  std::string algorithm = "auto";
  /// The host of each rank, by any names; empty: as it is found when the ranks meet.
  std::vector<std::string> hosts;
  /// What a message costs between two ranks of a host, and of two hosts; 0: as `convoy bench p2p` has measured.
  double inside_latency_us = 0.0, inside_gbytes_per_s = 0.0, between_latency_us = 0.0, between_gbytes_per_s = 0.0;
  friend bool operator==(const CommRecipe&, const CommRecipe&) = default;
};

/// `[checkpoint]`: what survives.
struct CheckpointRecipe {
  /// Saves after each so many steps, 0 only at the end; and how many are kept.
  std::int64_t every_steps = 0, keep = 2;
  /// Whether the end of the run is saved.
  bool at_end = true;
  friend bool operator==(const CheckpointRecipe&, const CheckpointRecipe&) = default;
};

/// `[measure]`: what is measured.
struct MeasureRecipe {
  /// Steps that are left out of medians, and how many of those after them are traced.
  std::int64_t warmup_steps = 10, trace_steps = 0;
  /// For the training plan, in words: which metrics decide, what is accepted, and the boundary of the baseline.
  std::string metrics, accepted, baseline;
  friend bool operator==(const MeasureRecipe&, const MeasureRecipe&) = default;
};

/// `[cost]`: what time costs.
struct CostRecipe {
  /// The price of one device for one hour, in any currency; 0 when unknown.
  double device_hour = 0.0;
  friend bool operator==(const CostRecipe&, const CostRecipe&) = default;
};

/// A whole recipe.
/// See:        docs/recipe.md for every key, examples/recipes for whole ones
struct Recipe {
  /// What the run is.
  TaskRecipe task;
  /// Where samples come from.
  DataRecipe data;
  /// What is trained.
  ModelRecipe model;
  /// How it is trained.
  TrainRecipe train;
  /// How the global batch is divided.
  ReplicasRecipe replicas;
  /// How ranks share the work.
  ParallelRecipe parallel;
  /// How bytes move.
  CommRecipe comm;
  /// What survives.
  CheckpointRecipe checkpoint;
  /// What is measured.
  MeasureRecipe measure;
  /// What time costs.
  CostRecipe cost;
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

/// Reads a recipe file and checks it: types, ranges, choices, and what keys demand of each other.
/// Each of `overrides` is "table.key=value" with a TOML value (quotes around a text may be left out).
/// Errors:     kInvalidArgument with one line naming file, line, key and the nearest valid key; for an override the
///             option's text in place of file and line; kIo when the file cannot be read
Recipe read_recipe(const std::string& path, const std::vector<std::string>& overrides = {});

/// The same for a text; `name` stands for the file in messages.
Recipe parse_recipe(const std::string& text, const std::string& name, const std::vector<std::string>& overrides = {});

/// Returns the recipe as TOML with every key, which read again gives the same recipe.
std::string to_toml(const Recipe& recipe);

/// Returns the recipe's JSON schema (draft 2020-12), from the same table that the reader checks against.
std::string recipe_json_schema();

/// Returns the recipe's reference page (docs/recipe.md), from the same table.
std::string recipe_page();

/// Returns a digest of all keys that decide the result of a run, not of those that only change its speed or extent or say
/// something for people (docs/recipe.md tells which). A run may only be resumed under an equal digest; train.epochs,
/// train.steps and the target may grow and are left out unless the schedule depends on them.
std::string recipe_digest(const Recipe& recipe);

}  // namespace convoy::spec

#include "convoy/spec/recipe/recipe_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/recipe/data_column.h"

// The accessor of a field: the name of table and key in the recipe's structs is their name in the file.
#define CONVOY_KEY(table, key) #table, #key, [](Recipe & recipe) -> RecipeField { return &recipe.table.key; }

namespace convoy::spec {
namespace {

constexpr double kInfinity = RecipeLimits::kUnbounded;

RecipeLimits at_least(double least) { return {least, kInfinity, false, false}; }
RecipeLimits between(double least, double most) { return {least, most, false, false}; }
RecipeLimits positive() { return {0.0, kInfinity, true, false}; }
RecipeLimits share() { return {0.0, 1.0, false, true}; }
RecipeLimits any() { return {}; }

using Keys = std::vector<RecipeKey>;
constexpr RecipeEffect kSpeed = RecipeEffect::kSpeed;
constexpr RecipeEffect kLength = RecipeEffect::kLength;

Keys task_keys() {
  return {
      {CONVOY_KEY(task, name), "Names the run in reports.", any(), {}, kSpeed},
      {CONVOY_KEY(task, seed),
       "Seeds everything that is random: initial weights, sample order, augmentation, dropout.",
       at_least(0),
       {}},
      {CONVOY_KEY(task, source), "Plan: where the data come from, and under which licence.", any(), {}, kSpeed},
      {CONVOY_KEY(task, prediction_moment),
       "Plan: when a prediction is made, and so what may be known by then.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(task, label), "Plan: what is predicted, and how labels were made.", any(), {}, kSpeed},
      {CONVOY_KEY(task, features), "Plan: what a prediction looks at.", any(), {}, kSpeed},
      {CONVOY_KEY(task, permitted_repeats),
       "Plan: which repeats of samples or of work are permitted.",
       any(),
       {},
       kSpeed},
  };
}

Keys data_keys() {
  return {
      {CONVOY_KEY(data, format),
       "The file format: `idx` (MNIST, Fashion-MNIST), `cifar10` (binary batches) or `csv`.",
       any(),
       {"idx", "cifar10", "csv"}},
      {CONVOY_KEY(data, path),
       "The folder with the files, or the CSV file; empty takes, for `idx`, the folder of Debian's package "
       "dataset-fashion-mnist.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(data, test_path), "CSV: the official test file, if there is one.", any(), {}, kSpeed},
      {CONVOY_KEY(data, delimiter), "CSV: what stands between two fields.", any(), {",", ";", "\t", "|"}},
      {CONVOY_KEY(data, split),
       "How parts are divided: `official` (the test part has files of its own, validation is drawn at random), `random`, "
       "`group` (no group in two parts) or `time` (the latest are tested on, those before them validated on).",
       any(),
       {"official", "random", "group", "time"}},
      {CONVOY_KEY(data, validation), "How many training samples are set apart for validation.", at_least(0), {}},
      {CONVOY_KEY(data, test),
       "CSV without `test_path`: how many samples are set apart for the test.",
       at_least(0),
       {}},
      {CONVOY_KEY(data, split_seed), "Seeds the choice of the samples that are set apart.", at_least(0), {}},
      {CONVOY_KEY(data, limit), "Uses only this many samples of the training part; 0 uses all.", at_least(0), {}},
      {CONVOY_KEY(data, shift), "Shifts each training image by up to this many pixels each way.", between(0, 1024), {}},
      {CONVOY_KEY(data, flip), "Flips half of the training images left to right.", any(), {}},
      {CONVOY_KEY(data, resample),
       "`none`: each training sample once per epoch. `balanced`: all classes are drawn alike, over the whole training "
       "part.",
       any(),
       {"none", "balanced"}},
      {CONVOY_KEY(data, missing), "CSV: the fields that stand for a missing value.", any(), {}},
      {CONVOY_KEY(data, positive),
       "CSV with two classes: the class whose scores are ranked; empty takes the second one.",
       any(),
       {}},
      {CONVOY_KEY(data, slices),
       "The columns that evaluation results are cut by; the time column is cut into four ranges.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(data, columns),
       "CSV: what each column of the file is used for: `number`, `category`, `target`, `group`, `time` or `excluded: "
       "REASON`; a number may add `, missing = mean`, a category `, missing = own` and `, unseen = own`.",
       any(),
       {},
       RecipeEffect::kResult,
       data_column_error},
      {CONVOY_KEY(data, prefetch), "How many global batches are prepared ahead.", between(1, 1024), {}, kSpeed},
  };
}

Keys model_keys() {
  return {
      {CONVOY_KEY(model, name),
       "The name in the registry: `softmax`, `mlp`, `cnn`, `resnet20`, or one that the program registered.",
       at_least(1),
       {}},
      {CONVOY_KEY(model, script),
       "A TorchScript module's file, trained as it is in place of a named model; empty for none.",
       any(),
       {}},
      {CONVOY_KEY(model, hidden), "The widths of the MLP's hidden layers.", between(1, 1 << 24), {}},
      {CONVOY_KEY(model, channels),
       "The channels of the CNN's convolutions; each second one is followed by pooling.",
       between(1, 1 << 16),
       {}},
      {CONVOY_KEY(model, dropout), "The share of activations that dropout removes.", share(), {}},
      {CONVOY_KEY(model, batch_norm), "Whether convolutions are followed by batch norm.", any(), {}},
      {CONVOY_KEY(model, sync_batch_norm),
       "Whether batch norm is over all replicas' samples of a micro-batch, and not over each replica's alone.",
       any(),
       {}},
      {CONVOY_KEY(model, dtype), "The type of parameters and gradients.", any(), {"float32", "float64"}},
  };
}

Keys train_length_keys() {
  return {
      {CONVOY_KEY(train, epochs),
       "Stops after this many passes over the training part; 0 leaves it to `steps`.",
       at_least(0),
       {},
       kLength},
      {CONVOY_KEY(train, steps),
       "Stops after this many optimizer steps, whatever `epochs` says; 0 leaves it to `epochs`.",
       at_least(0),
       {},
       kLength},
      {CONVOY_KEY(train, target_metric),
       "Stops once this validation metric reaches `target`; empty for no target.",
       any(),
       {"", "accuracy", "macro_f1", "loss"},
       kSpeed},
      {CONVOY_KEY(train, target), "The value to reach (for the loss: to fall to).", at_least(0), {}, kSpeed},
      {CONVOY_KEY(train, global_batch),
       "Samples in one optimizer step, over all replicas and micro-batches.",
       between(1, 1 << 30),
       {}},
      {CONVOY_KEY(train, accumulation),
       "Micro-batches that each replica works through in one step.",
       between(1, 1 << 20),
       {}},
      {CONVOY_KEY(train, drop_last), "Whether the short last batch of an epoch is left out.", any(), {}},
  };
}

Keys train_optimizer_keys() {
  return {
      {CONVOY_KEY(train, optimizer), "How gradients change the weights.", any(), {"sgd", "adam", "adamw"}},
      {CONVOY_KEY(train, learning_rate), "The highest learning rate.", positive(), {}},
      {CONVOY_KEY(train, momentum), "SGD: momentum.", share(), {}},
      {CONVOY_KEY(train, dampening), "SGD: dampening of momentum.", between(0, 1), {}},
      {CONVOY_KEY(train, nesterov), "SGD: Nesterov's momentum.", any(), {}},
      {CONVOY_KEY(train, weight_decay),
       "Weight decay: added to the gradient (sgd, adam) or taken from the weights (adamw).",
       at_least(0),
       {}},
      {CONVOY_KEY(train, beta1), "Adam: decay of the first moment.", share(), {}},
      {CONVOY_KEY(train, beta2), "Adam: decay of the second moment.", share(), {}},
      {CONVOY_KEY(train, epsilon), "Adam: added to the root of the second moment.", positive(), {}},
      {CONVOY_KEY(train, class_weights),
       "`balanced`: samples of rare classes weigh more, all classes alike in sum over the whole training part.",
       any(),
       {"none", "balanced"}},
      {CONVOY_KEY(train, clip_norm),
       "The largest allowed norm of the whole gradient; 0 does not clip.",
       at_least(0),
       {}},
  };
}

Keys train_schedule_keys() {
  return {
      {CONVOY_KEY(train, schedule),
       "How the learning rate changes after the warm-up.",
       any(),
       {"constant", "step", "cosine", "linear"}},
      {CONVOY_KEY(train, warmup),
       "The rate rises linearly over this much from 0; see `schedule_unit`.",
       at_least(0),
       {}},
      {CONVOY_KEY(train, schedule_unit), "What `warmup` and `schedule_every` count.", any(), {"steps", "samples"}},
      {CONVOY_KEY(train, schedule_every),
       "Schedule `step`: the rate falls each time this much is done.",
       at_least(0),
       {}},
      {CONVOY_KEY(train, schedule_factor), "Schedule `step`: the factor of each fall.", {0.0, 1.0, true, false}, {}},
      {CONVOY_KEY(train, final_fraction),
       "Schedules `cosine` and `linear`: the share of the rate that is left at the end.",
       between(0, 1),
       {}},
      {CONVOY_KEY(train, evaluate_every),
       "Evaluates on the validation part after each so many epochs; 0 only at the end.",
       at_least(0),
       {}},
      {CONVOY_KEY(train, evaluation_batch),
       "Samples in one evaluation batch; part of the result, since kernels round by batch size.",
       between(1, 1 << 30),
       {}},
  };
}

Keys sharing_keys() {
  return {
      {CONVOY_KEY(replicas, mode),
       "`on`: `count` logical replicas, dealt out over any number of ranks. `off`: one shard a rank, the classic way.",
       any(),
       {"on", "off"}},
      {CONVOY_KEY(replicas, count), "How many replicas share the global batch.", between(1, 1 << 16), {}},
      {CONVOY_KEY(replicas, buffer_merge),
       "How buffers of the replicas (running statistics) become one for evaluation.",
       any(),
       {"mean", "first"}},
      {CONVOY_KEY(parallel, strategy), "The strategy.", any(), {"data"}},
      {CONVOY_KEY(parallel, bucket_bytes),
       "Gradients are exchanged in buckets of about this many bytes; 0: by this machine's calibration (`convoy bench`), or "
       "4 MiB without one. The run directory's recipe has the number.",
       between(0, 1LL << 40),
       {},
       kSpeed},
      {CONVOY_KEY(parallel, overlap), "Whether buckets are exchanged while backward goes on.", any(), {}, kSpeed},
      {CONVOY_KEY(parallel, divide_update),
       "Whether the ranks of a host have the parameters once, in shared memory, and each updates a share of them.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(parallel, unused_parameters),
       "Parameters that a replica did not use in a step: `allow` counts them as zero for it, `refuse` ends the run and "
       "names them.",
       any(),
       {"allow", "refuse"},
       kSpeed},
      {CONVOY_KEY(parallel, share),
       "How replicas are dealt out over ranks: `even`, or `auto`, in proportion to how fast each rank works through one of "
       "them, measured before the first step. Which replicas a rank carries never changes the result.",
       any(),
       {"even", "auto"},
       kSpeed},
      {CONVOY_KEY(parallel, threads),
       "Compute threads of each rank; part of the result, since kernels split work by thread.",
       between(1, 1024),
       {}},
  };
}

Keys comm_keys() {
  return {
      {CONVOY_KEY(comm, transport),
       "The transport: `shared_memory` joins ranks of one host, `gloo` ranks of any hosts over TCP, `openmpi` ranks that "
       "`mpirun` started.",
       any(),
       {"shared_memory", "gloo", "openmpi"},
       kSpeed},
      {CONVOY_KEY(comm, interfaces),
       "Of gloo: network interfaces (`eth0`, `eth0/ipv6`), addresses or host names that each host has; messages are "
       "spread over one connection for each, at most 8. Empty: the interface that leads to the job's store.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(comm, timeout_s),
       "Every wait for another rank ends after this many seconds.",
       {0.0, 1e6, true, false},
       {},
       kSpeed},
      {CONVOY_KEY(comm, chunk_bytes),
       "Messages are cut into chunks of this many bytes.",
       between(8, 1LL << 40),
       {},
       kSpeed},
  };
}

// Everything that comm.algorithm takes.
std::vector<std::string> algorithm_names() {
  std::vector<std::string> names = {"auto"};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == "all_reduce") names.push_back(algorithm.name);
  }
  return names;
}

Keys topology_keys() {
  return {
      {CONVOY_KEY(comm, algorithm),
       "How gradients are summed: `auto` chooses by size, hosts and the machine's calibration; or an algorithm of "
       "all-reduce. With `replicas.mode = \"on\"` no choice changes a bit.",
       any(), algorithm_names(), kSpeed},
      {CONVOY_KEY(comm, hosts),
       "The host of each rank, by any names, for example `[\"a\", \"a\", \"b\", \"b\"]`. Empty: as it is found when "
       "the ranks meet. A job of one rank does not look at it.",
       any(),
       {},
       kSpeed},
      {CONVOY_KEY(comm, inside_latency_us),
       "What a message without bytes costs between two ranks of a host, in microseconds; this and the following three "
       "decide on the choice of algorithms only. 0: as `convoy bench p2p` has measured on this machine; without a "
       "measurement all four are needed.",
       at_least(0),
       {},
       kSpeed},
      {CONVOY_KEY(comm, inside_gbytes_per_s),
       "How many 10^9 bytes a second go from rank to rank inside a host; 0: as measured.",
       at_least(0),
       {},
       kSpeed},
      {CONVOY_KEY(comm, between_latency_us),
       "What a message without bytes costs between two hosts, in microseconds; 0: as measured.",
       at_least(0),
       {},
       kSpeed},
      {CONVOY_KEY(comm, between_gbytes_per_s),
       "How many 10^9 bytes a second go from one host to another; 0: as measured.",
       at_least(0),
       {},
       kSpeed},
  };
}

Keys closing_keys() {
  return {
      {CONVOY_KEY(checkpoint, every_steps),
       "Saves after each so many steps; 0 only at the end.",
       at_least(0),
       {},
       kSpeed},
      {CONVOY_KEY(checkpoint, keep), "How many checkpoints are kept.", at_least(1), {}, kSpeed},
      {CONVOY_KEY(checkpoint, at_end), "Whether the end of the run is saved.", any(), {}, kSpeed},
      {CONVOY_KEY(measure, warmup_steps), "Steps that are left out of medians.", at_least(0), {}, kSpeed},
      {CONVOY_KEY(measure, trace_steps),
       "How many steps after these are traced: `trace.json` shows what each rank did when, and `convoy trace` what follows "
       "from it. 0: none.",
       between(0, 100000),
       {},
       kSpeed},
      {CONVOY_KEY(measure, metrics), "Plan: which metrics decide, on which part.", any(), {}, kSpeed},
      {CONVOY_KEY(measure, accepted), "Plan: the range of the metrics that is accepted.", any(), {}, kSpeed},
      {CONVOY_KEY(measure, baseline), "Plan: what a speed-up is compared with, and what is timed.", any(), {}, kSpeed},
      {CONVOY_KEY(cost, device_hour),
       "The price of one device for one hour, in any currency; 0 when unknown.",
       at_least(0),
       {},
       kSpeed},
  };
}

Keys all_keys() {
  Keys all;
  for (const auto& part : {task_keys(), data_keys(), model_keys(), train_length_keys(), train_optimizer_keys(),
                           train_schedule_keys(), sharing_keys(), comm_keys(), topology_keys(), closing_keys()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

bool RecipeLimits::allow(double number) const {
  return (above ? number > least : number >= least) && (below ? number < most : number <= most);
}

std::string RecipeLimits::words() const {
  const std::string low = std::isinf(least) ? "" : fmt::format("{} {}", above ? "above" : "at least", least);
  const std::string high = std::isinf(most) ? "" : fmt::format("{} {}", below ? "below" : "at most", most);
  return low + (low.empty() || high.empty() ? "" : " and ") + high;
}

std::span<const RecipeTable> recipe_tables() {
  static const std::vector<RecipeTable> tables = {
      {"task", "what the run is"},
      {"data", "where samples come from and how they are divided"},
      {"model", "what is trained"},
      {"train", "how it is trained"},
      {"replicas", "the fixed division of the global batch that makes results independent of the number of ranks"},
      {"parallel", "how ranks share the work"},
      {"comm", "how bytes move"},
      {"checkpoint", "what survives"},
      {"measure", "what is measured"},
      {"cost", "what time costs"},
  };
  return tables;
}

std::span<const RecipeKey> recipe_keys() {
  static const Keys keys = all_keys();
  return keys;
}

const RecipeKey* find_recipe_key(std::string_view table, std::string_view name) {
  const auto keys = recipe_keys();
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const RecipeKey& key) { return key.table == table && key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string_view type_words(const RecipeKey& key) {
  Recipe recipe;
  switch (key.field(recipe).index()) {
    case 0: return "true or false";
    case 1: return "an integer";
    case 2: return "a number";
    case 3: return "a text";
    case 4: return "a list of integers";
    case 5: return "a list of texts";
    default: return "a table of texts";
  }
}

RecipeValue recipe_value(const Recipe& recipe, const RecipeKey& key) {
  // One accessor serves reading and writing; nothing is written through it here.
  return std::visit([](const auto* field) { return RecipeValue(*field); }, key.field(const_cast<Recipe&>(recipe)));
}

}  // namespace convoy::spec

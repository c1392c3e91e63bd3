// Says what a recipe means, section by section.
#include "convoy/spec/document/plan_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/text.h"
#include "convoy/spec/document/plan_sections.h"
#include "convoy/spec/document/step_story.h"

namespace convoy::spec {
namespace {

PlanSection work_section(const Recipe& recipe, const PlanFacts& facts) {
  const bool off = recipe.replicas.mode == "off";
  PlanSection section{"Division of work", {}, {}};
  const auto say = [&](const char* what, std::string text) { section.lines.push_back(stated(what, std::move(text))); };
  if (facts.ranks > 0) {
    say("ranks", fmt::to_string(facts.ranks));
  } else {
    say("ranks",
        off ? "not chosen here; the result depends on their number"
            : fmt::format("any number from 1 to {}: the result is the same, bit for bit", recipe.replicas.count));
  }
  say("replicas", off ? "one a rank: each rank is a shard of the batch"
                      : fmt::format("{}, dealt to ranks in order, as even as they divide", recipe.replicas.count));
  say("split of the model", "none: each rank holds the whole model (strategy " + recipe.parallel.strategy + ")");
  say("global batch",
      counted(recipe.train.global_batch, "sample") + ", weighted by what counted, never a mean of means");
  say("accumulation", fmt::format("{} of each replica in a step", counted(recipe.train.accumulation, "micro-batch")));
  say("synchrony", "synchronous, every step: no update is made from a gradient that is not complete");
  if (facts.ranks == 0) return section;
  section.table = {{"rank", "replicas", "samples of a step", "samples of a micro-batch"}};
  const WorkDivision work = divide_work(recipe, facts.ranks);
  for (std::size_t rank = 0; rank < work.ranks.size(); ++rank) {
    const RankShare& share = work.ranks[rank];
    section.table.push_back({fmt::to_string(rank),
                             fmt::format("{} to {}", share.replicas.begin, share.replicas.end - 1),
                             fmt::to_string(share.samples),
                             fmt::format("{} to {}", share.least_in_micro_batch, share.most_in_micro_batch)});
  }
  return section;
}

std::string model_words(const ModelRecipe& model) {
  std::string words = model.script.empty() ? model.name : "TorchScript " + model.script;
  if (model.name == "mlp") words += fmt::format(", hidden layers {}", fmt::join(model.hidden, ", "));
  if (model.name == "cnn") {
    words +=
        fmt::format(", channels {}, {} batch norm", fmt::join(model.channels, ", "), !model.batch_norm ? "no" : model.sync_batch_norm ? "with synchronised" : "with");
  }
  return model.dropout > 0 ? fmt::format("{}, dropout {}", words, model.dropout) : words;
}

std::string optimizer_words(const TrainRecipe& train) {
  std::string words = fmt::format("{}, learning rate {}", train.optimizer, train.learning_rate);
  if (train.momentum > 0) words += fmt::format(", {}momentum {}", train.nesterov ? "Nesterov " : "", train.momentum);
  if (train.weight_decay > 0) words += fmt::format(", weight decay {}", train.weight_decay);
  if (train.clip_norm > 0) words += fmt::format(", gradient norm clipped at {}", train.clip_norm);
  return words;
}

std::string rate_words(const TrainRecipe& train) {
  std::string words = train.schedule;
  if (train.schedule == "step") {
    words += fmt::format(": times {} every {} {}", train.schedule_factor, train.schedule_every, train.schedule_unit);
  }
  if (train.final_fraction > 0) words += fmt::format(" down to {} of the rate", train.final_fraction);
  return train.warmup > 0 ? fmt::format("{}, after {} {} of warm-up", words, train.warmup, train.schedule_unit) : words;
}

std::string length_words(const TrainRecipe& train) {
  std::string words = train.steps > 0 ? counted(train.steps, "step") : counted(train.epochs, "epoch");
  if (!train.target_metric.empty()) {
    words += fmt::format(", or until {} of the validation part reaches {}", train.target_metric, train.target);
  }
  return words;
}

PlanSection model_section(const Recipe& recipe) {
  return {"Model and training",
          {stated("model", model_words(recipe.model)),
           stated("precision",
                  fmt::format("parameters, gradients and their sums in {}; losses, counts and norms in float64",
                              recipe.model.dtype)),
           stated("optimizer", optimizer_words(recipe.train)), stated("schedule of the rate", rate_words(recipe.train)),
           stated("length", length_words(recipe.train)), stated("seed", fmt::to_string(recipe.task.seed))},
          {}};
}

std::string baseline_words(const PlanBaseline& baseline) {
  std::string words = fmt::format("{} on {}", baseline.directory, counted(baseline.ranks, "rank"));
  if (baseline.other_settings) words += " under a recipe with other results";
  if (baseline.step_ms) words += fmt::format(", median step {:.2f} ms", *baseline.step_ms);
  if (baseline.samples_per_s) words += fmt::format(", {:.0f} samples a second", *baseline.samples_per_s);
  if (baseline.parameter_bytes) {
    words += ", parameters " + format_bytes(static_cast<std::uint64_t>(*baseline.parameter_bytes));
  }
  for (const auto& value : baseline.quality) words += fmt::format(", {} {:.4f}", value.first, value.second);
  return words;
}

PlanSection baseline_section(const Recipe& recipe, const PlanFacts& facts) {
  return {
      "Baseline",
      {declared("boundary", recipe.measure.baseline, "measure.baseline"),
       stated("timed",
              fmt::format("optimizer steps, from taking the batch to the update, without the first {}; evaluation, "
                          "checkpoints and set-up are timed apart",
                          recipe.measure.warmup_steps)),
       stated("measured", facts.baseline ? baseline_words(*facts.baseline) : "no run was given (`--baseline RUNDIR`)")},
      {}};
}

PlanSection metric_section(const Recipe& recipe) {
  const std::int64_t every = recipe.train.evaluate_every;
  const std::string when = recipe.data.validation == 0 ? std::string("the test part once at the end")
                           : every == 0
                               ? std::string("the validation part and the test part at the end")
                               : fmt::format("the validation part after every {}, the test part once at the end",
                                             every == 1 ? "epoch" : counted(every, "epoch"));
  return {"Metrics",
          {declared("what decides", recipe.measure.metrics, "measure.metrics"),
           declared("accepted range", recipe.measure.accepted, "measure.accepted"),
           stated("computed",
                  "loss, accuracy, F1 of each class and their mean; for two classes ROC AUC and average precision too; "
                  "all over the whole part, never as a mean of ranks"),
           stated("slices", recipe.data.slices.empty() ? std::string("none declared")
                                                       : fmt::format("{}", fmt::join(recipe.data.slices, ", "))),
           stated("evaluated", when + fmt::format(", in fixed batches of {}", recipe.train.evaluation_batch))},
          {}};
}

PlanSection recovery_section(const Recipe& recipe) {
  const CheckpointRecipe& checkpoint = recipe.checkpoint;
  std::string saved = checkpoint.every_steps > 0 ? "every " + counted(checkpoint.every_steps, "step") : "";
  if (checkpoint.at_end) saved += saved.empty() ? "at the end" : " and at the end";
  const std::string lost = checkpoint.every_steps > 0
                               ? fmt::format("less than {}, which are done again with the same samples and bits",
                                             counted(checkpoint.every_steps, "step"))
                               : "everything since the start: nothing is saved before the end";
  return {"Recovery",
          {stated("checkpoints",
                  saved.empty() ? std::string("none") : fmt::format("{}; the newest {} kept", saved, checkpoint.keep)),
           stated("lost when a rank fails", lost),
           stated("a wait for a rank ends after",
                  fmt::format("{} s, with an error that names who is missing", recipe.comm.timeout_s)),
           stated("use of samples",
                  "the ledger proves that the final lineage used each sample once per epoch; redone work "
                  "is listed apart"),
           declared("permitted repeats", recipe.task.permitted_repeats, "task.permitted_repeats")},
          {}};
}

}  // namespace

PlanLine declared(std::string what, std::string text, std::string key) {
  return {std::move(what), std::move(text), std::move(key)};
}

PlanLine stated(std::string what, std::string text) { return {std::move(what), std::move(text), ""}; }

std::string counted(std::int64_t number, const char* noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

PlanDocument make_plan_document(const Recipe& recipe, const PlanFacts& facts) {
  PlanDocument plan;
  plan.name = recipe.task.name;
  plan.recipe_file = facts.recipe_file;
  plan.sections = {task_section(recipe),         feature_section(recipe),         encoding_section(recipe),
                   split_section(recipe, facts), work_section(recipe, facts),     sampling_section(recipe, facts),
                   model_section(recipe),        baseline_section(recipe, facts), metric_section(recipe),
                   recovery_section(recipe)};
  return plan;
}

}  // namespace convoy::spec

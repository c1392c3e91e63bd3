// The timed runs and their comparison.
#include "apps/cli/run/baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {
namespace {

// One kind of timed run; `replicas` 0 keeps the recipe's.
struct Kind {
  const char* folder;
  int ranks;
  int replicas;
};

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

RankJob prepare(const spec::Recipe& recipe, const BaselineOptions& options, const Kind& kind, int round) {
  RankJob job;
  job.ranks = kind.ranks;
  job.threads = static_cast<int>(recipe.parallel.threads);
  job.directory = fmt::format("{}/timing/{}-{}", options.directory, kind.folder, round);
  job.timing_only = true;
  Files& files = local_files();
  files.remove(job.directory);
  files.make_directories(job.directory + "/log");
  write_atomic(files, job.directory + "/recipe.toml",
               spec::to_toml(timing_recipe(recipe, options.steps, kind.replicas)));
  return job;
}

double median_step(const std::string& directory) {
  const std::optional<double> median = summary_number(read_summary(directory), "/step_ms/median");
  if (median && *median > 0.0) return *median;
  throw Error(ErrorCode::kCorrupt, fmt::format("{}/summary.json has no step_ms.median", directory));
}

Json compare(double own, double same_replicas, double whole_batch, const BaselineOptions& options) {
  const bool whole_is_faster = whole_batch < same_replicas;
  return {
      {"baseline", whole_is_faster ? "whole batch in one process" : "same replicas on one rank"},
      {"over_one_rank_same_replicas", same_replicas / own},
      {"over_one_process_whole_batch", whole_batch / own},
      {"step_ms", {{"this", own}, {"one_rank_same_replicas", same_replicas}, {"one_process_whole_batch", whole_batch}}},
      {"steps", options.steps},
      {"rounds", options.rounds}};
}

}  // namespace

spec::Recipe timing_recipe(const spec::Recipe& recipe, int steps, int replicas) {
  spec::Recipe timed = recipe;
  timed.train.steps = steps;
  timed.train.epochs = 0;  // the steps decide
  timed.train.target_metric.clear();
  timed.train.target = 0.0;
  timed.train.evaluate_every = 0;
  timed.checkpoint.every_steps = 0;
  timed.checkpoint.at_end = false;
  timed.measure.warmup_steps = std::min<std::int64_t>(recipe.measure.warmup_steps, steps / 4);
  if (replicas > 0) timed.replicas.count = replicas;
  return timed;
}

BaselineOutcome time_baselines(const spec::Recipe& recipe, const BaselineOptions& options,
                               const std::function<elastic::LaunchResult(const RankJob& job)>& run_job) {
  const std::array<Kind, 3> kinds = {Kind{"same-ranks", options.ranks, 0}, Kind{"one-rank", 1, 0},
                                     Kind{"one-process", 1, 1}};
  std::array<std::vector<double>, 3> medians;
  for (int round = 1; round <= options.rounds; ++round) {
    for (std::size_t turn = 0; turn < kinds.size(); ++turn) {
      // There and back again: a machine that slows down steadily then slows all kinds alike.
      const std::size_t which = round % 2 == 1 ? turn : kinds.size() - 1 - turn;
      const RankJob job = prepare(recipe, options, kinds[which], round);
      const elastic::LaunchResult result = run_job(job);
      if (!result.ok()) {
        return {
            {}, result.status, fmt::format("the timed run in {} failed: {}", job.directory, describe_failure(result))};
      }
      medians[which].push_back(median_step(job.directory));
    }
  }
  BaselineOutcome outcome;
  outcome.speedup = compare(middle(medians[0]), middle(medians[1]), middle(medians[2]), options);
  return outcome;
}

}  // namespace convoy::cli

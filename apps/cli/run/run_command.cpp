// `convoy run`: from a recipe to a run directory and a table.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "apps/cli/run/baselines.h"
#include "apps/cli/command_line.h"
#include "apps/cli/run/checked_recipe.h"
#include "apps/cli/run/progress.h"
#include "apps/cli/run/rank_job.h"
#include "apps/cli/requests.h"
#include "apps/cli/run/run_directory.h"
#include "apps/cli/run/summary.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {
namespace {

Json describe_run(const RunRequest& request, const elastic::LaunchOptions& options) {
  Json environment = describe_machine();
  environment["convoy_version"] = kVersion;
  environment["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  environment["ranks"] = request.ranks;
  environment["variables"] = elastic::blas_variables(elastic::job_environment(options));
  environment["command_line"] = request.command_line;
  return environment;
}

// One run: the request, what it became, and what all of its jobs share.
class Run {
 public:
  explicit Run(const RunRequest& request) : request_(request) {}

  int execute() {
    prepare();
    const elastic::LaunchResult result = train();
    if (!result.ok()) return fail(result.status, describe_failure(result));
    if (request_.baselines) {
      const BaselineOutcome outcome = time();
      if (outcome.status != 0) return fail(outcome.status, outcome.message);
    }
    return finish();
  }

 private:
  void prepare() {
    CheckedRecipe checked = read_checked_recipe(request_.recipe, request_.overrides, request_.ranks);
    recipe_ = std::move(checked.recipe);
    buckets_ = checked.buckets;
    find_rank_program();
    if (request_.resume) check_resumable(request_.out, recipe_);
    directory_ = make_run_directory(request_, recipe_);
    write_opening(directory_, recipe_, describe_run(request_, rank_launch_options(main_job())));
  }

  RankJob main_job() const {
    return {request_.ranks, static_cast<int>(recipe_.parallel.threads), directory_, request_.resume, false, {}};
  }

  elastic::LaunchResult train() {
    // What an earlier part of the run ended with must not pass for the end of this one.
    local_files().remove(directory_ + "/summary.json");
    note("{} on {} rank{}, run directory {}", recipe_.task.name, request_.ranks, request_.ranks == 1 ? "" : "s",
         directory_);
    if (request_.ranks > 1) {
      note("gradients are exchanged in buckets of about {:.2f} MiB ({})", static_cast<double>(buckets_.bytes) / (1 << 20),
           buckets_.source);
    }
    return launch_showing(main_job());
  }

  BaselineOutcome time() {
    BaselineOptions options;
    options.directory = directory_;
    options.ranks = request_.ranks;
    options.steps = request_.baseline_steps;
    const auto run_job = [this](const RankJob& job) {
      note("timing {}", job.directory);
      return launch_showing(job);
    };
    BaselineOutcome outcome = time_baselines(recipe_, options, run_job);
    if (outcome.status != 0) return outcome;
    Json summary = read_summary(directory_);
    summary["speedup"] = outcome.speedup;
    write_atomic(local_files(), directory_ + "/summary.json", summary.dump(2) + "\n");
    return outcome;
  }

  elastic::LaunchResult launch_showing(const RankJob& job) {
    elastic::LaunchOptions options = rank_launch_options(job);
    options.signals = &signals_;
    Progress progress(!request_.quiet && !job.timing_only, {recipe_.train.global_batch, recipe_.train.epochs});
    options.on_event = [&progress](int rank, const elastic::RankEvent& event) { progress.take(rank, event); };
    return elastic::launch(options);
  }

  int finish() const {
    const Json summary = read_summary(directory_);
    if (request_.json) {
      fmt::print("{}\n", summary.dump());
    } else {
      fmt::print("{}run directory: {}\n", summary_tables(summary), directory_);
    }
    const auto ok = summary.find("ok");
    return ok != summary.end() && *ok == false ? exit_status(ErrorCode::kFailed) : 0;
  }

  int fail(int status, const std::string& message) const {
    fmt::print(stderr, "convoy: {}", message);
    if (request_.json) {
      const Json object = {{"ok", false}, {"status", status}, {"error", message}, {"run_directory", directory_}};
      fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return status;
  }

  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) const {
    if (!request_.quiet) fmt::print(stderr, "{}\n", fmt::format(format, std::forward<Args>(args)...));
  }

  const RunRequest& request_;
  elastic::SignalTrap signals_;
  spec::Recipe recipe_;
  plan::BucketChoice buckets_;
  std::string directory_;
};

}  // namespace

int run_command(const RunRequest& request) { return Run(request).execute(); }

}  // namespace convoy::cli

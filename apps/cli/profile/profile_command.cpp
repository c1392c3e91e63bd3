// `convoy profile`: one worker process measures a recipe; this command starts it and shows what it found.
#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "apps/cli/byte_size.h"
#include "apps/cli/interrupted.h"
#include "apps/cli/profile/profile_page.h"
#include "apps/cli/requests.h"
#include "apps/cli/run/checked_recipe.h"
#include "apps/cli/run/rank_job.h"
#include "apps/cli/scratch_folder.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {
namespace {

// A mistyped unit is no limit: no machine has so much.
constexpr double kMostMemory = 1e15;

Json read_profile(const std::string& directory) {
  const std::string path = directory + "/profile.json";
  if (!local_files().exists(path)) throw Error(ErrorCode::kCorrupt, fmt::format("{} is missing", path));
  Json profile = Json::parse(local_files().read(path), nullptr, false);
  if (!profile.is_object()) throw Error(ErrorCode::kCorrupt, fmt::format("{} is damaged", path));
  return profile;
}

std::int64_t memory_limit(const ProfileRequest& request) {
  if (request.memory_limit.empty()) return 0;
  const std::optional<double> bytes = read_byte_size(request.memory_limit);
  if (!bytes || *bytes < 1 || *bytes > kMostMemory) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--memory-limit {}: this is no size of memory: write 500MiB, 2GiB", request.memory_limit));
  }
  return static_cast<std::int64_t>(*bytes);
}

elastic::LaunchResult measure(const ProfileRequest& request, const spec::Recipe& recipe, const std::string& directory) {
  Files& files = local_files();
  files.make_directories(directory + "/log");
  write_atomic(files, directory + "/recipe.toml", spec::to_toml(recipe));
  RankJob job;
  job.threads = static_cast<int>(recipe.parallel.threads);
  job.directory = directory;
  job.arguments = {"--profile", std::to_string(request.steps), "--warmup", std::to_string(request.warmup)};
  if (const std::int64_t limit = memory_limit(request); limit > 0) {
    job.arguments.insert(job.arguments.end(), {"--memory-limit", std::to_string(limit)});
  }
  elastic::SignalTrap signals;
  elastic::LaunchOptions options = rank_launch_options(job);
  options.signals = &signals;
  if (!request.json) fmt::print(stderr, "measuring {} steps in one process\n", request.warmup + request.steps);
  return elastic::launch(options);
}

}  // namespace

int profile_command(const ProfileRequest& request) {
  memory_limit(request);
  const spec::Recipe recipe = read_checked_recipe(request.recipe, request.overrides, 1).recipe;
  if (!request.out.empty() && !local_files().list(request.out).empty()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("--out {}: the directory is not empty", request.out));
  }
  const ScratchFolder scratch;
  const std::string directory = request.out.empty() ? scratch.path() : request.out;
  const elastic::LaunchResult result = measure(request, recipe, directory);
  if (result.interrupted_by != 0) throw Interrupted(result.interrupted_by, result.message);
  if (!result.ok()) {
    const std::string message = fmt::format("the profile failed: {}", describe_failure(result));
    fmt::print(stderr, "convoy: {}", message);
    if (request.json) {
      const Json object = {{"ok", false}, {"status", result.status}, {"error", message}};
      fmt::print("{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return result.status;
  }
  const Json profile = read_profile(directory);
  if (request.json) {
    fmt::print("{}\n", profile.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    fmt::print("{}", profile_page(profile));
    if (!request.out.empty()) fmt::print("profile: {}/profile.json\n", request.out);
  }
  return 0;
}

}  // namespace convoy::cli

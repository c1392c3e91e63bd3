#include "apps/cli/bench/model_sizes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/interrupted.h"
#include "apps/cli/run/rank_job.h"
#include "apps/cli/scratch_folder.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {

std::vector<std::int64_t> model_sizes(const spec::Recipe& recipe) {
  const ScratchFolder folder;
  write_atomic(local_files(), folder.file("recipe.toml"), spec::to_toml(recipe));
  local_files().make_directories(folder.file("log"));
  elastic::SignalTrap signals;
  RankJob job;
  job.directory = folder.path();
  job.arguments = {"--model-sizes"};
  elastic::LaunchOptions options = rank_launch_options(job);
  options.signals = &signals;
  const elastic::LaunchResult result = elastic::launch(options);
  if (result.interrupted_by != 0) throw Interrupted(result.interrupted_by, result.message);
  if (!result.ok()) {
    std::string why = describe_failure(result);
    while (why.ends_with('\n')) why.pop_back();
    throw Error(ErrorCode::kInvalidArgument, why);
  }
  const auto json = nlohmann::json::parse(local_files().read(folder.file("model_sizes.json")));
  std::set<std::int64_t> sizes;
  for (const auto& bytes : json.at("bucket_bytes")) sizes.insert(bytes.get<std::int64_t>());
  for (const auto& parameter : json.at("parameters")) sizes.insert(parameter.at("bytes").get<std::int64_t>());
  return {sizes.begin(), sizes.end()};
}

}  // namespace convoy::cli

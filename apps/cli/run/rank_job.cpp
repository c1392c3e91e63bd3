// How `convoy run` starts its worker processes.
#include "apps/cli/run/rank_job.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::cli {

std::string find_rank_program() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const std::string path = parent_path(self) + "/convoy-rank";
  if (!local_files().exists(path)) {
    throw Error(ErrorCode::kNotSupported,
                fmt::format("{} is missing: the command needs the worker program beside it (make build)", path));
  }
  return path;
}

elastic::LaunchOptions rank_launch_options(const RankJob& job) {
  elastic::LaunchOptions options;
  options.program = find_rank_program();
  options.arguments = {"--recipe", job.directory + "/recipe.toml", "--out", job.directory};
  if (job.resume) options.arguments.emplace_back("--resume");
  options.arguments.insert(options.arguments.end(), job.arguments.begin(), job.arguments.end());
  options.ranks = job.ranks;
  options.threads = {job.threads, true};
  options.log_folder = job.directory + "/log";
  if (job.timing_only) options.extra_environment["CONVOY_TIMING_ONLY"] = "1";
  return options;
}

std::string describe_failure(const elastic::LaunchResult& result) {
  std::string text = result.message + "\n";
  if (result.culprit < 0) return text;
  const elastic::RankOutcome& culprit = result.ranks[static_cast<std::size_t>(result.culprit)];
  if (culprit.error) return text;
  for (const std::string& line : culprit.last_lines) text += fmt::format("[rank {}] {}\n", result.culprit, line);
  return text;
}

}  // namespace convoy::cli

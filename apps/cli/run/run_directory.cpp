// Names, checks and opening files of run directories.
#include "apps/cli/run/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/elastic/launcher/rank_environment.h"

namespace convoy::cli {
namespace {

// A run's name is free text; its directory's name is not.
std::string folder_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return c < 0x80 && !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '-');
  return name.empty() || name.front() == '.' ? "run" + name : name;
}

// Returns whether the folder was made here: two runs that start in the same second never share one.
bool make_new(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directory(path, error);
  if (error && error != std::errc::file_exists) {
    throw Error(ErrorCode::kIo, fmt::format("cannot make {}: {}", path, error.message()));
  }
  return made;
}

std::string new_directory(const std::string& name) {
  local_files().make_directories("runs");
  const std::string stem =
      fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", folder_name(name), fmt::localtime(std::time(nullptr)));
  std::string path = stem;
  for (int copy = 2; !make_new(path); ++copy) path = fmt::format("{}-{}", stem, copy);
  return path;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

std::string recipe_path(const std::string& directory) { return directory + "/recipe.toml"; }

}  // namespace

std::string make_run_directory(const RunRequest& request, const spec::Recipe& recipe) {
  Files& files = local_files();
  std::string path = request.out;
  if (path.empty()) {
    path = new_directory(recipe.task.name);
  } else if (!request.resume && !files.list(path).empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the run directory {} is not empty: name another, or go on in it with --resume", path));
  }
  files.make_directories(path + "/log");
  return path;
}

void check_resumable(const std::string& directory, const spec::Recipe& recipe) {
  if (!local_files().exists(recipe_path(directory))) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no run to resume in {}", directory));
  }
  const spec::Recipe earlier = spec::read_recipe(recipe_path(directory));
  if (spec::recipe_digest(earlier) == spec::recipe_digest(recipe)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the run in {} had another recipe, so going on would not give the same result: compare {}",
                          directory, recipe_path(directory)));
}

void write_opening(const std::string& directory, const spec::Recipe& recipe,
                   const nlohmann::ordered_json& environment) {
  write_atomic(local_files(), recipe_path(directory), spec::to_toml(recipe));
  write_atomic(local_files(), directory + "/environment.json",
               environment.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

nlohmann::ordered_json describe_machine() {
  nlohmann::ordered_json machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine["host"] = names.nodename;
    machine["kernel"] = std::string(names.sysname) + " " + names.release;
    machine["architecture"] = names.machine;
  }
  const elastic::CpuFeatures cpu = elastic::detect_cpu();
  machine["cpu"] = cpu_model();
  machine["cpu_features"] = {{"avx512", cpu.avx512}, {"avx2_fma", cpu.avx2_fma}};
  machine["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  machine["usable_cores"] = usable_cores();
  machine["memory_bytes"] = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return machine;
}

}  // namespace convoy::cli

// Workers as ranks of a supervised job; with Open MPI the job is mpirun, whose ranks meet in the job's store.
#include "apps/cli/bench/bench_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "apps/cli/interrupted.h"
#include "apps/cli/scratch_folder.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/elastic/launcher/launcher.h"
#include "convoy/elastic/launcher/signal_trap.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string find_worker() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const std::string path = parent_path(self) + "/convoy-bench";
  if (local_files().exists(path)) return path;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("{} is missing: the command needs the worker program beside it (make build)", path));
}

std::string find_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const auto colon = folders.find(':');
    const std::string candidate = folders.substr(0, colon) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    folders = colon == std::string::npos ? "" : folders.substr(colon + 1);
  }
  return "";
}

// The launcher's words for one rank must not reach mpirun's ranks, who have Open MPI's; its store's words must.
std::vector<std::string> mpirun_arguments(int ranks) {
  std::vector<std::string> arguments;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CONVOY_EVENTS_FD"}) {
    arguments.insert(arguments.end(), {"-u", name});
  }
  arguments.push_back("mpirun");
  if (::geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
  // Free ranks, as those of the other contenders, and no more hosts than this one.
  arguments.insert(arguments.end(), {"--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated"});
  arguments.insert(arguments.end(), {"-n", fmt::format("{}", ranks)});
  return arguments;
}

// Returns what a rank failed with by itself rather than because another had failed; null when no rank said anything.
Json first_error(const std::string& result_file) {
  Json chosen;
  int chosen_echo = 0;
  for (const std::string& name : local_files().list(parent_path(result_file))) {
    if (name.rfind(base_name(result_file) + ".error.", 0) != 0) continue;
    Json error = Json::parse(local_files().read(parent_path(result_file) + "/" + name), nullptr, false);
    if (error.is_discarded()) continue;  // the rank was stopped while it wrote
    const int echo = error.at("code") == "Aborted" ? 2 : error.at("code") == "Timeout" ? 1 : 0;
    if (!chosen.is_null() && echo >= chosen_echo) continue;
    chosen = std::move(error);
    chosen_echo = echo;
  }
  return chosen;
}

// Throws what the ranks failed with.
[[noreturn]] void fail(const elastic::LaunchResult& result, const std::string& result_file) {
  if (result.interrupted_by != 0) throw Interrupted(result.interrupted_by, result.message);
  const Json error = first_error(result_file);
  if (!error.is_null()) {
    const int status = error.at("status");
    for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kTimeout, ErrorCode::kIo}) {
      if (exit_status(code) == status) throw Error(code, error.at("message"));
    }
    throw Error(ErrorCode::kFailed, error.at("message"));
  }
  std::string text = result.message;
  if (result.culprit >= 0) {
    const auto& lines = result.ranks[static_cast<std::size_t>(result.culprit)].last_lines;
    for (const std::string& line : lines) {
      if (line.find("convoy-bench:") != std::string::npos) text = line.substr(line.find("convoy-bench:"));
    }
  }
  throw Error(result.status == exit_status(ErrorCode::kPeerLost) ? ErrorCode::kPeerLost : ErrorCode::kFailed, text);
}

Json to_json(const std::optional<law::Machine>& machine) {
  if (!machine) return nullptr;
  return {{"inside", {machine->inside.alpha_s, machine->inside.beta_s}},
          {"between", {machine->between.alpha_s, machine->between.beta_s}},
          {"gamma_s", machine->gamma_s},
          {"kappa_s", machine->kappa_s}};
}

Json run_job(elastic::LaunchOptions options, const ScratchFolder& folder) {
  elastic::SignalTrap signals;
  options.signals = &signals;
  const std::string result_file = folder.file("result.json");
  const elastic::LaunchResult result = elastic::launch(options);
  if (!result.ok()) fail(result, result_file);
  return Json::parse(local_files().read(result_file));
}

}  // namespace

std::vector<std::string> available_peers() {
  const ScratchFolder folder;
  elastic::LaunchOptions options;
  options.program = find_worker();
  options.arguments = {"--list-peers", "--result", folder.file("result.json")};
  std::vector<std::string> peers = run_job(options, folder).at("peers").get<std::vector<std::string>>();
  if (find_in_path("mpirun").empty()) std::erase(peers, "openmpi");
  return peers;
}

Json run_workers(const BenchRequest& request, const BenchPlan& plan, const std::string& kind,
                 const std::vector<std::string>& peers) {
  const ScratchFolder folder;
  const bool threads = plan.transport == "in_process";
  const Json wanted = {{"kind", kind},
                       {"transport", plan.transport},
                       {"ranks", request.ranks},
                       {"dtype", request.dtype},
                       {"op", request.op},
                       {"algorithms", plan.algorithms},
                       {"sizes", plan.sizes},
                       {"buffers", request.buffers},
                       {"cold", request.cold},
                       {"repeats", request.repeats},
                       {"peers", peers},
                       {"hosts", plan.hosts},
                       {"chunk_bytes", plan.chunk_bytes},
                       {"machine", to_json(machine_of(request, plan))},
                       {"timeout_s", request.timeout_s},
                       {"limit_s", request.limit_s}};
  const std::vector<std::string> worker = {"--request", wanted.dump(), "--result", folder.file("result.json")};
  elastic::LaunchOptions options;
  options.program = find_worker();
  options.ranks = threads ? 1 : request.ranks;
  if (plan.transport == "openmpi" || std::find(peers.begin(), peers.end(), "openmpi") != peers.end()) {
    options.arguments = mpirun_arguments(request.ranks);
    options.arguments.push_back(options.program);
    options.program = "env";
    options.ranks = 1;
  }
  options.arguments.insert(options.arguments.end(), worker.begin(), worker.end());
  return run_job(options, folder);
}

}  // namespace convoy::cli

#include "convoy/train/rank/rank_main.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/log.h"
#include "convoy/plan/calibration.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/topology.h"
#include "convoy/train/event_pipe.h"
#include "convoy/train/model_sizes.h"
#include "convoy/train/profile/profile.h"
#include "convoy/train/run.h"
#include "convoy/train/session.h"
#include "convoy/train/verify/verify.h"

namespace convoy::train {
namespace {

constexpr const char* kUsage =
    "usage: convoy-rank --recipe FILE --out DIR [--resume | --model-sizes | --probe STEPS | "
    "--reference RANKS --probe STEPS | --profile STEPS [--warmup STEPS] [--memory-limit BYTES]]";

// What this process was asked for.
struct Request {
  RunRequest run;
  std::optional<ProbeRequest> probe;
  std::optional<ProfileRequest> profile;
  bool model_sizes = false;
};

std::int64_t number_of(const std::string& option, const std::string& text, std::int64_t least = 1) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least) return number;
  throw Error(ErrorCode::kInvalidArgument,
              option + " takes a whole number from " + std::to_string(least) + " on, not '" + text + "'");
}

Request read_request(const std::vector<std::string>& arguments) {
  Request all;
  RunRequest& request = all.run;
  ProbeRequest probe;
  bool probes = false;
  ProfileRequest profile;
  bool profiles = false;
  std::string recipe;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--recipe" && has_value) {
      recipe = arguments[++i];
    } else if (arguments[i] == "--out" && has_value) {
      request.directory = arguments[++i];
    } else if (arguments[i] == "--probe" && has_value) {
      probe.steps = number_of("--probe", arguments[++i]);
      probes = true;
    } else if (arguments[i] == "--reference" && has_value) {
      probe.reference = true;
      probe.reference_ranks = static_cast<int>(number_of("--reference", arguments[++i]));
    } else if (arguments[i] == "--profile" && has_value) {
      profile.steps = number_of("--profile", arguments[++i]);
      profiles = true;
    } else if (arguments[i] == "--warmup" && has_value) {
      profile.warmup = number_of("--warmup", arguments[++i], 0);
    } else if (arguments[i] == "--memory-limit" && has_value) {
      profile.memory_limit_bytes = number_of("--memory-limit", arguments[++i]);
    } else if (arguments[i] == "--resume") {
      request.resume = true;
    } else if (arguments[i] == "--model-sizes") {
      all.model_sizes = true;
    } else {
      throw Error(ErrorCode::kInvalidArgument, "unknown argument '" + arguments[i] + "'");
    }
  }
  if (probes) all.probe = probe;
  if (profiles) all.profile = profile;
  if (recipe.empty() || request.directory.empty()) {
    throw Error(ErrorCode::kInvalidArgument, kUsage);
  }
  request.recipe = spec::read_recipe(recipe);
  request.timing_only = std::getenv("CONVOY_TIMING_ONLY") != nullptr;
  return all;
}

// Only rank 0's counts, and a calibration that cannot be read is no reason not to train.
std::optional<law::Machine> machine_of_rank(const comm::JobEnvironment& job, const spec::CommRecipe& comm) {
  if (job.rank != 0) return std::nullopt;
  std::optional<plan::Calibration> calibration;
  try {
    calibration = plan::read_own_calibration(local_files(), plan::calibration_path());
  } catch (const Error& error) {
    log_warning("algorithms are chosen without a calibration: {}", error.message());
  }
  return plan::machine_of(calibration, comm, job.world_size);
}

SessionOptions session_options(const spec::Recipe& recipe, const std::string& directory) {
  const comm::JobEnvironment job = comm::read_job_environment();
  SessionOptions options;
  options.threads = static_cast<int>(recipe.parallel.threads);
  options.group.timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(recipe.comm.timeout_s));
  options.group.chunk_bytes = recipe.comm.chunk_bytes;
  options.group.recorder_folder = directory + "/log";
  options.group.selection.algorithm = recipe.comm.algorithm;
  options.group.selection.reproducible = recipe.replicas.mode == "on";
  options.group.selection.hosts = spec::hosts_of_recipe(recipe.comm.hosts, job.world_size);
  options.group.selection.machine = machine_of_rank(job, recipe.comm);
  options.transport = {recipe.comm.transport, recipe.comm.interfaces};
  options.start_limit = options.group.timeout;
  return options;
}

// Runs, and where that fails tells the other ranks before the group goes away.
void run_in_session(const Request& request, const zoo::Registry& models, EventPipe& events) {
  Session session(session_options(request.run.recipe, request.run.directory));
  const RunServices services{session.group(), models, local_files(), events};
  try {
    if (request.model_sizes) {
      write_model_sizes(request.run, services);
    } else if (request.profile) {
      run_profile(request.run, *request.profile, services);
    } else {
      request.probe ? run_probe(request.run, *request.probe, services) : run(request.run, services);
    }
  } catch (const Error& error) {
    session.group().abort(error);
    throw;
  } catch (const std::exception& error) {
    session.group().abort(Error(ErrorCode::kInternal, error.what()));
    throw;
  }
}

}  // namespace

int rank_main(int argc, char** argv, const zoo::Registry& models) {
  EventPipe events;
  try {
    run_in_session(read_request({argv + 1, argv + argc}), models, events);
    return 0;
  } catch (const Error& error) {
    events.error(error.code(), error.what());
    log_error("{}", error.what());
    return exit_status(error.code());
  } catch (const std::exception& error) {
    // libtorch appends a stack trace to its messages; the first line is what a user can use.
    const std::string text = error.what();
    const std::string line = text.substr(0, text.find('\n'));
    events.error(ErrorCode::kInternal, line);
    log_error("{}", text);
    return 1;
  }
}

}  // namespace convoy::train

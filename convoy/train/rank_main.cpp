#include "convoy/train/rank_main.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/log.h"
#include "convoy/spec/recipe.h"
#include "convoy/train/event_pipe.h"
#include "convoy/train/run.h"
#include "convoy/train/session.h"

namespace convoy::train {
namespace {

RunRequest read_request(const std::vector<std::string>& arguments) {
  RunRequest request;
  std::string recipe;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--recipe" && has_value) {
      recipe = arguments[++i];
    } else if (arguments[i] == "--out" && has_value) {
      request.directory = arguments[++i];
    } else if (arguments[i] == "--resume") {
      request.resume = true;
    } else {
      throw Error(ErrorCode::kInvalidArgument, "unknown argument '" + arguments[i] + "'");
    }
  }
  if (recipe.empty() || request.directory.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "usage: convoy-rank --recipe FILE --out DIR [--resume]");
  }
  request.recipe = spec::read_recipe(recipe);
  request.timing_only = std::getenv("CONVOY_TIMING_ONLY") != nullptr;
  return request;
}

SessionOptions session_options(const spec::Recipe& recipe) {
  SessionOptions options;
  options.threads = static_cast<int>(recipe.parallel.threads);
  options.group.timeout =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(recipe.comm.timeout_s));
  options.group.chunk_bytes = recipe.comm.chunk_bytes;
  options.start_limit = options.group.timeout;
  return options;
}

// Runs, and where that fails tells the other ranks before the group goes away.
void run_in_session(const RunRequest& request, const zoo::Registry& models, EventPipe& events) {
  Session session(session_options(request.recipe));
  try {
    run(request, {session.group(), models, local_files(), events});
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

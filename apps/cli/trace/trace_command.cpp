// `convoy trace`: what the trace of a run says about communication, waiting and faults.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/requests.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/observe/trace/diagnosis.h"
#include "convoy/observe/trace/trace_analysis.h"
#include "convoy/observe/trace/trace_file.h"
#include "convoy/observe/trace/trace_report.h"

namespace convoy::cli {
namespace {

// Says why there is no trace, as far as the directory shows it.
[[noreturn]] void fail_without_trace(Files& files, const std::string& directory) {
  if (!files.exists(directory)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no run directory {}", directory));
  }
  for (const std::string& name : files.list(directory)) {
    if (!name.starts_with("trace.rank-")) continue;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{0} has no trace.json, since the run failed: {0}/{1} and its like hold what single ranks saw, "
                    "for a trace viewer",
                    directory, name));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} has no trace.json: run with --set measure.trace_steps=50", directory));
}

}  // namespace

int trace_command(const TraceRequest& request) {
  Files& files = local_files();
  const std::string path = request.run_directory + "/trace.json";
  if (!files.exists(path)) fail_without_trace(files, request.run_directory);
  const observe::Trace trace = observe::read_trace(files, path);
  const observe::TraceAnalysis analysis = observe::analyse(trace);
  const std::vector<observe::Finding> findings = observe::diagnose(trace, analysis);
  if (request.json) {
    fmt::print("{}\n", observe::to_json(trace, analysis, findings)
                           .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{}", observe::trace_tables(trace, analysis, findings));
  }
  return 0;
}

}  // namespace convoy::cli

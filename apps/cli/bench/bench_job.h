// How `convoy bench` starts its workers and takes what they measured.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench/bench_plan.h"
#include "apps/cli/requests.h"

namespace convoy::cli {

/// Returns the other libraries that the worker was built with and that can be started: "openmpi", "gloo".
/// Errors:     kNotSupported when the worker program is missing
std::vector<std::string> available_peers();

/// Measures and returns rank 0's JSON.
/// Errors:     what the ranks failed with; kPeerLost when one was ended by a signal; kFailed when interrupted
nlohmann::ordered_json run_workers(const BenchRequest& request, const BenchPlan& plan, const std::string& kind,
                                   const std::vector<std::string>& peers);

}  // namespace convoy::cli

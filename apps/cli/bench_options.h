// The options of `convoy bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/cli/requests.h"

namespace convoy::cli {

/// Adds the verb with its actions; returns it.
/// Ownership:  borrows the request until the command line was parsed
CLI::App* add_bench(CLI::App& app, BenchRequest& bench);

/// Returns what is wrong with the request, in one line; "" for nothing.
std::string check_bench(const BenchRequest& bench);

}  // namespace convoy::cli

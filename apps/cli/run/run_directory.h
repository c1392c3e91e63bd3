// The directory that a run leaves behind: chosen, made, and opened by its first two files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/requests.h"
#include "convoy/spec/recipe.h"

namespace convoy::cli {

/// Makes the run's directory with the folder log/ and returns its path: the one that was asked for, which must be empty
/// or absent, or a new one, runs/NAME-YYYYmmdd-HHMMSS with -2, -3 ... where that is taken.
/// Errors:     kInvalidArgument naming a directory that is not empty; kIo
std::string make_run_directory(const RunRequest& request, const spec::Recipe& recipe);

/// Checks that a run can go on in its directory under this recipe.
/// Errors:     kInvalidArgument when there is no run in it, or when that run had another recipe
void check_resumable(const std::string& directory, const spec::Recipe& recipe);

/// Writes recipe.toml (every key) and environment.json. Those of an earlier part of the run are replaced.
void write_opening(const std::string& directory, const spec::Recipe& recipe, const nlohmann::ordered_json& environment);

/// Returns host name, processor, cores, memory and kernel of this machine, for environment.json.
nlohmann::ordered_json describe_machine();

}  // namespace convoy::cli

#include "apps/cli/run/checked_recipe.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "apps/cli/data/data_check.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/log.h"
#include "convoy/plan/calibration.h"
#include "convoy/spec/topology.h"

namespace convoy::cli {

plan::BucketChoice chosen_buckets(const spec::Recipe& recipe, int ranks) {
  std::optional<plan::Calibration> calibration;
  try {
    calibration = plan::read_own_calibration(local_files(), plan::calibration_path());
  } catch (const Error& error) {
    log_warning("buckets are chosen without a calibration: {}", error.message());
  }
  std::optional<law::Machine> machine = plan::machine_of(calibration, recipe.comm, ranks);
  if (machine) machine->host_of_rank = spec::hosts_of_recipe(recipe.comm.hosts, ranks);
  return plan::choose_bucket_bytes(recipe, machine);
}

CheckedRecipe read_checked_recipe(const std::string& path, const std::vector<std::string>& overrides, int ranks) {
  if (!local_files().exists(path)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no recipe {}", path));
  }
  spec::Recipe recipe = spec::read_recipe(path, overrides);
  if (recipe.replicas.mode == "on" && ranks > recipe.replicas.count) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("-n {}: {} ranks for the {} replicas of {} ([replicas] count): each rank needs a replica",
                            ranks, ranks, recipe.replicas.count, path));
  }
  try {
    (void)spec::hosts_of_recipe(recipe.comm.hosts, ranks);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("-n {}: {} ({})", ranks, error.message(), path));
  }
  if (recipe.comm.transport == "openmpi" && ranks > 1) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} has comm.transport = \"openmpi\", whose ranks mpirun must start: mpirun -n {} convoy-rank "
                    "--recipe {} --out DIR (docs/transports.md), or take another transport here",
                    path, ranks, path));
  }
  check_data(local_files(), recipe.data);
  const plan::BucketChoice buckets = chosen_buckets(recipe, ranks);
  recipe.parallel.bucket_bytes = buckets.bytes;
  return {std::move(recipe), buckets};
}

}  // namespace convoy::cli

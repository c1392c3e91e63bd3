// `convoy bench collective --explain`: a schedule as a table and as a picture.
#pragma once

#include <optional>

#include "apps/cli/bench/bench_plan.h"
#include "apps/cli/requests.h"
#include "convoy/plan/calibration.h"

namespace convoy::cli {

/// Prints the schedule of the plan's one algorithm and size, with its price where the machine is calibrated.
/// Errors:     kInvalidArgument for an algorithm that does not fit
void print_schedule(const BenchRequest& request, const BenchPlan& plan,
                    const std::optional<plan::Calibration>& calibration);

}  // namespace convoy::cli

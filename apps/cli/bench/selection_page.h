// `convoy bench collective --table`: which algorithms a group chooses, by bytes.
#pragma once

#include "apps/cli/bench/bench_plan.h"
#include "apps/cli/requests.h"

namespace convoy::cli {

/// Prints the choice by price of the plan's operation, ranks, hosts and links: among algorithms whose results do not
/// depend on the ranks, and among all, where there are others.
/// Errors:     kInvalidArgument when the machine is not calibrated, naming the command that does it
void print_selection(const BenchRequest& request, const BenchPlan& plan);

}  // namespace convoy::cli

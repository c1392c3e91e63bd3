// Measures messages between each two ranks, and what combining and copying bytes costs on one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "apps/bench/request/request.h"
#include "apps/bench/team/team.h"

namespace convoy::bench {

/// Returns one row for each pair and size: half of a round trip. The same on all ranks.
///
/// A round trip is a schedule of two messages; small ones follow each other in one operation, so that a row is what a
/// message costs within a schedule.
/// Collective: all ranks
/// Errors:     kFailed when what arrived is not what was sent
nlohmann::ordered_json measure_pairs(Team& team, const Request& request);

/// Returns `gamma_s_per_byte` (a sum of two sources, by byte of one) and `kappa_s_per_byte` (a copy), with all ranks busy.
/// Collective: all ranks
nlohmann::ordered_json measure_arithmetic(Team& team);

}  // namespace convoy::bench

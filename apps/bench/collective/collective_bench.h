// Measures collectives: every contender in turn, measurement by measurement, so that noise hits all alike.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "apps/bench/peers/peer_library.h"
#include "apps/bench/request/request.h"
#include "apps/bench/team/team.h"

namespace convoy::bench {

/// Returns one row for each size and contender; the same on all ranks.
/// Collective: all ranks
/// Errors:     kFailed when a result is wrong; kInvalidArgument for an algorithm that is unknown or does not fit
nlohmann::ordered_json measure_collectives(Team& team, const Request& request,
                                           const std::vector<std::unique_ptr<PeerLibrary>>& peers);

}  // namespace convoy::bench

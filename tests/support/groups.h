// Runs ranks as threads that share an in-process group, for tests of what is built on groups.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/in_process_transport.h"
#include "tests/support/ranks.h"

namespace convoy::testing {

/// Runs `body(group)` on `ranks` threads, each with its rank's group; throws the first exception of the lowest rank.
/// `hosts` says on which host each rank shall think itself.
inline void with_groups(int ranks, const std::function<void(comm::Group&)>& body, const spec::HostOfRank& hosts = {}) {
  auto transports = comm::make_in_process_transports(ranks);
  comm::GroupOptions options;
  options.timeout = std::chrono::seconds(30);
  options.selection.hosts = hosts;
  run_ranks(ranks, [&](int rank) {
    const auto group = comm::make_group(std::move(transports[static_cast<std::size_t>(rank)]), options);
    try {
      body(*group);
    } catch (const Error& error) {
      group->abort(error);
      throw;
    }
    comm::barrier(*group);  // a group that is destroyed aborts those that still use it
  });
}

}  // namespace convoy::testing

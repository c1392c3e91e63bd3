// Groups ranks by host.
#include "convoy/spec/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "convoy/base/error.h"

namespace convoy::spec {

HostOfRank number_hosts(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  HostOfRank hosts;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    hosts.push_back(static_cast<int>(found - known.begin()));
    if (found == known.end()) known.push_back(name);
  }
  return hosts;
}

HostOfRank hosts_of_recipe(const std::vector<std::string>& names, int ranks) {
  if (names.empty() || ranks == 1) return {};
  if (names.size() != static_cast<std::size_t>(ranks)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("comm.hosts names a host for each of {} rank{}, and there are {} ranks", names.size(),
                            names.size() == 1 ? "" : "s", ranks));
  }
  return number_hosts(names);
}

std::vector<std::vector<int>> ranks_by_host(int ranks, const HostOfRank& hosts) {
  if (!hosts.empty() && hosts.size() != static_cast<std::size_t>(ranks)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("hosts of {} ranks where there are {}", hosts.size(), ranks));
  }
  std::vector<int> known;
  std::vector<std::vector<int>> members;
  for (int rank = 0; rank < ranks; ++rank) {
    const int host = hosts.empty() ? 0 : hosts[static_cast<std::size_t>(rank)];
    const auto found = std::find(known.begin(), known.end(), host);
    const auto index = static_cast<std::size_t>(found - known.begin());
    if (found == known.end()) {
      known.push_back(host);
      members.emplace_back();
    }
    members[index].push_back(rank);
  }
  return members;
}

std::vector<int> host_major_order(int ranks, const HostOfRank& hosts) {
  std::vector<int> order;
  for (const std::vector<int>& host : ranks_by_host(ranks, hosts)) order.insert(order.end(), host.begin(), host.end());
  return order;
}

std::vector<int> round_robin_order(int ranks, const HostOfRank& hosts) {
  const std::vector<std::vector<int>> members = ranks_by_host(ranks, hosts);
  std::vector<int> order;
  for (std::size_t turn = 0; order.size() < static_cast<std::size_t>(std::max(0, ranks)); ++turn) {
    for (const std::vector<int>& host : members) {
      if (turn < host.size()) order.push_back(host[turn]);
    }
  }
  return order;
}

}  // namespace convoy::spec

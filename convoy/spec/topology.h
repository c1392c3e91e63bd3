// Which ranks share a host, and orders of ranks that follow from it.
#pragma once

#include <string>
#include <vector>

namespace convoy::spec {

/// The host of each rank, as any numbers; empty means that all ranks share one.
using HostOfRank = std::vector<int>;

/// Returns the hosts that are named rank by rank as numbers, in the order of their first ranks.
HostOfRank number_hosts(const std::vector<std::string>& names);

/// Returns the hosts of a recipe's `comm.hosts`; empty when it names none. A job of one rank has no use for them.
/// Errors:     kInvalidArgument with one line naming the key and both numbers when it names hosts of other than `ranks`
HostOfRank hosts_of_recipe(const std::vector<std::string>& names, int ranks);

/// Returns the ranks of each host, hosts in the order of their first rank.
/// Errors:     kInvalidArgument when hosts are named for another number of ranks
std::vector<std::vector<int>> ranks_by_host(int ranks, const HostOfRank& hosts);

/// Returns the ranks host after host: the order of a ring that crosses between hosts as rarely as it can, once a host.
std::vector<int> host_major_order(int ranks, const HostOfRank& hosts);

/// Returns the ranks dealt out over the hosts in turn: the order of a ring that crosses between hosts at each step, as
/// often as it can.
std::vector<int> round_robin_order(int ranks, const HostOfRank& hosts);

}  // namespace convoy::spec

// The Gloo transport: ranks of several hosts (or one) over TCP sockets. See docs/transports.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/comm/store.h"
#include "convoy/comm/transport.h"

namespace convoy::comm {

/// How a group meets over sockets; all but `interfaces` and `limit` must be the same on all ranks.
struct GlooOptions {
  /// The name under which the ranks meet in the store.
  std::string group = "world";
  /// How often the group was formed anew; apart from each other, as names are.
  std::uint64_t generation = 1;
  /// The longest wait for the other ranks.
  Duration limit = std::chrono::seconds(60);
  /// Names of network interfaces ("eth0"), addresses or host names of this host, one connection to each peer for each
  /// of them; as many on all ranks. Empty: the loopback interface.
  std::vector<std::string> interfaces;
  /// Messages from one rank to another that are on their way over one connection.
  std::size_t chunks = 4;
  /// The largest message.
  std::size_t chunk_bytes = std::size_t{1} << 18;
  /// How long a rank that leaves waits for peers to have received everything.
  Duration farewell = std::chrono::seconds(1);
};

/// Joins the other ranks and returns this rank's end. Nothing is left in the store.
/// Collective: all ranks, with the same options
/// Errors:     kTimeout naming the ranks that did not come; kPeerLost naming a rank and its address that cannot be
///             reached; kInvalidArgument for an interface that is not there; kNotSupported where this build has no Gloo
std::unique_ptr<Transport> make_gloo_transport(Store& store, int rank, int size, const GlooOptions& options = {});

}  // namespace convoy::comm

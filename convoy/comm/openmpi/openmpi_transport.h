// The Open MPI transport: ranks that mpirun started, over whatever network MPI finds, with MPI's own collectives as
// algorithm "native". See docs/transports.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "convoy/comm/store.h"
#include "convoy/comm/transport.h"

namespace convoy::comm {

/// How a group meets over Open MPI; all but `limit` must be the same on all ranks.
struct OpenMpiOptions {
  /// The name under which the ranks meet in the store.
  std::string group = "world";
  /// How often the group was formed anew; apart from each other, as names are.
  std::uint64_t generation = 1;
  /// The longest wait for the other ranks.
  Duration limit = std::chrono::seconds(60);
  /// Messages from one rank to another that MPI has not let go of.
  std::size_t chunks = 4;
  /// The largest message. Larger: fewer messages; smaller: the next one overlaps with more of it.
  std::size_t chunk_bytes = std::size_t{1} << 18;
  /// How long a rank that leaves waits for peers to have received everything.
  Duration farewell = std::chrono::seconds(1);
};

/// Joins the other ranks and returns this rank's end. Nothing is left in the store. The group has all ranks of one
/// mpirun, with their numbers.
/// Collective: all ranks, with the same options
/// Errors:     kTimeout naming the ranks that did not come; kInvalidArgument when mpirun did not start the ranks;
///             kNotSupported where this build has no Open MPI, or after a native collective of this process that did
///             not end
std::unique_ptr<Transport> make_openmpi_transport(Store& store, int rank, int size, const OpenMpiOptions& options = {});

}  // namespace convoy::comm

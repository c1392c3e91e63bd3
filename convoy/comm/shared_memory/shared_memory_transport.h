// The shared-memory transport: ranks of one host, as processes or threads. See docs/transports.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/comm/store.h"
#include "convoy/comm/transport.h"

namespace convoy::comm {

/// How a group meets over shared memory; all but `arena` and `limit` must be the same on all ranks.
struct SharedMemoryOptions {
  /// The name under which the ranks meet in the store.
  std::string group = "world";
  /// How often the group was formed anew; apart from each other, as names are.
  std::uint64_t generation = 1;
  /// The longest wait for the other ranks.
  Duration limit = std::chrono::seconds(60);
  /// This rank's memory that peers read in place; null takes the process's arena.
  SharedArena* arena = nullptr;
  /// Messages from one rank to another that are on their way or lent at one time.
  std::size_t slots = 256;
  /// Payloads outside the arena go through this many chunks of this many bytes a pair of ranks; taken when first used.
  std::size_t staging_chunks = 4;
  std::size_t chunk_bytes = std::size_t{1} << 18;
  /// Payloads outside the arena of at least this many bytes are read from the sender's memory in one copy, where the
  /// kernel allows that (process_vm_readv). Smaller: more system calls; larger: more double copies; SIZE_MAX: never.
  std::size_t remote_bytes = std::size_t{1} << 15;
};

/// Joins the other ranks and returns this rank's end. Nothing lies in the file system, and nothing is left in the
/// store.
/// Collective: all ranks, with the same options
/// Ownership:  borrows the arena while the transport lives
/// Errors:     kTimeout naming the ranks that did not come; kPeerLost naming one that came and is gone
std::unique_ptr<Transport> make_shared_memory_transport(Store& store, int rank, int size,
                                                        const SharedMemoryOptions& options = {});

}  // namespace convoy::comm

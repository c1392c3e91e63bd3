// The seam to Open MPI: messages between the ranks that mpirun started, and its own collectives.
//
// All of MPI's own types stay in mpi_link.cpp and mpi_process.cpp; where Open MPI is not installed,
// mpi_link_unavailable.cpp takes their place. MPI cannot take back what was started: so messages lie in memory that the
// link owns until MPI has let go of it, and nothing here blocks except make_mpi_link, which has a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/dtype.h"

namespace convoy::comm {

/// Memory of one message.
struct MpiBlock {
  /// The memory; at least `capacity` bytes.
  std::unique_ptr<std::byte[]> memory;
  /// Its size.
  std::size_t capacity = 0;
  /// How much of it the message takes.
  std::size_t bytes = 0;
};

/// Messages of a pair of ranks keep their order within a lane.
enum class MpiLane { kControl = 0, kData = 1 };

/// The collectives of MPI.
enum class MpiCollective {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
};

/// One collective operation on this rank, in MPI's words.
struct MpiCall {
  /// The operation.
  MpiCollective collective = MpiCollective::kBarrier;
  /// The element type.
  DType dtype = DType::kFloat32;
  /// How contributions are combined; a mean is MPI's sum.
  ReduceOp reduce = ReduceOp::kSum;
  /// The root, where there is one.
  int root = 0;
  /// What this rank brings; null for MPI_IN_PLACE.
  const std::byte* input = nullptr;
  /// Where its result goes; null for MPI_IN_PLACE.
  std::byte* output = nullptr;
  /// Elements of all_reduce, broadcast, reduce; of the own part of all_gather, gather, scatter.
  int elements = 0;
  /// Reduce_scatter, all_gather, gather, scatter: each rank's elements; all_to_all: what goes to each rank.
  std::vector<int> counts;
  /// Where these begin.
  std::vector<int> offsets;
  /// All_to_all: elements that come from each rank.
  std::vector<int> from_counts;
  /// Where these begin.
  std::vector<int> from_offsets;
};

/// All ranks of the job in a communicator of their own.
/// Threads:    any; all links of a process take turns
/// Errors:     kPeerLost with MPI's words; kAborted once a collective of this process was given up
class MpiLink {
 public:
  virtual ~MpiLink() = default;
  /// Returns memory for a message of this size.
  virtual MpiBlock take(std::size_t bytes) = 0;
  /// Keeps a block for later.
  virtual void give(MpiBlock block) = 0;
  /// Starts to send a block.
  virtual void send(int peer, MpiLane lane, MpiBlock block) = 0;
  /// Returns how many messages to a peer MPI has not let go of.
  virtual std::size_t sending(int peer, MpiLane lane) = 0;
  /// Moves what can be moved; returns whether a message has come or gone, or a collective has ended.
  virtual bool progress() = 0;
  /// Returns whether MPI has let go of everything that this rank has started.
  virtual bool idle() = 0;
  /// Takes the next whole message of a peer.
  virtual std::optional<MpiBlock> receive(int peer, MpiLane lane) = 0;
  /// Returns whether MPI can do this: its types and reductions are fewer than ours.
  virtual bool can(const MpiCall& call) const = 0;
  /// Starts a collective; one at a time.
  /// Ownership:  borrows the memory until finished(); where that is given up, MPI of this process is given up too
  virtual void start(const MpiCall& call) = 0;
  /// Returns whether the collective that was started has ended.
  virtual bool finished() = 0;
  /// Gives up a collective that was started: from now on nothing in this process calls MPI.
  virtual void give_up() = 0;
  /// Says that nothing is on its way any more in either direction, so that the communicator can be given back.
  virtual void retire() = 0;
};

/// Returns whether this build has Open MPI.
bool has_openmpi();

/// Starts MPI in this process, if that was not done before, and makes a communicator of all its ranks.
/// Collective: all ranks, once all are known to be there
/// Errors:     kNotSupported where this build has no Open MPI, or where an earlier collective of this process was given
///             up; kInvalidArgument when mpirun did not start this process as this rank of as many; kTimeout
std::unique_ptr<MpiLink> make_mpi_link(int rank, int size, Duration limit);

/// Checks that mpirun (or another launcher with PMIx) has started this process.
/// Errors:     kNotSupported, kInvalidArgument as make_mpi_link
void check_started_by_mpi(int rank, int size);

}  // namespace convoy::comm

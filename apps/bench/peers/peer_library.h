// The seam to other libraries of collectives, measured beside ours. Where one is not installed, a file named
// *_unavailable.cpp says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/dtype.h"
#include "convoy/comm/store.h"

namespace convoy::bench {

/// One operation, divided evenly; the root is rank 0.
struct PeerCall {
  /// The operation.
  std::string op;
  /// The element type; what is combined is summed.
  DType dtype = DType::kFloat32;
  /// Elements as CollectiveShape counts them.
  std::int64_t elements = 0;
  /// The input, and the output where it lies apart.
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// Another library.
/// Collective: all ranks make the same calls
/// Threads:    the one that made it
class PeerLibrary {
 public:
  virtual ~PeerLibrary() = default;
  /// Returns its name: "openmpi", "gloo".
  virtual std::string name() const = 0;
  /// Returns the algorithms by which it does an operation; none when it has no such operation.
  virtual std::vector<std::string> algorithms(const std::string& op, DType dtype) const = 0;
  /// Does it.
  /// Blocking:   Gloo: for at most its longest wait; Open MPI: without limit
  virtual void run(const std::string& algorithm, const PeerCall& call) = 0;
};

/// Returns whether this build has it.
bool has_openmpi();
/// Starts Open MPI in this process, which mpirun has started.
/// Errors:     kNotSupported where this build has no Open MPI; kInvalidArgument when mpirun did not start the ranks
std::unique_ptr<PeerLibrary> make_openmpi(int rank, int size);

/// Returns whether this build has it.
bool has_gloo_library();
/// Connects Gloo's own context over TCP on the loopback interface.
/// Errors:     kNotSupported where this build has no Gloo; kPeerLost when it cannot connect
std::unique_ptr<PeerLibrary> make_gloo_library(comm::Store& store, int rank, int size, Duration timeout);

}  // namespace convoy::bench

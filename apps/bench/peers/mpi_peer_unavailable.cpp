// Open MPI where it is not installed.
#include "apps/bench/peers/peer_library.h"
#include "convoy/base/error.h"

namespace convoy::bench {

bool has_openmpi() { return false; }

std::unique_ptr<PeerLibrary> make_openmpi(int, int) {
  throw Error(ErrorCode::kNotSupported, "this build has no Open MPI: install libopenmpi-dev and build again");
}

}  // namespace convoy::bench

// Gloo where it is not installed.
#include "apps/bench/peers/peer_library.h"
#include "convoy/base/error.h"

namespace convoy::bench {

bool has_gloo_library() { return false; }

std::unique_ptr<PeerLibrary> make_gloo_library(comm::Store&, int, int, Duration) {
  throw Error(ErrorCode::kNotSupported, "this build has no Gloo: install libgloo-dev and build again");
}

}  // namespace convoy::bench

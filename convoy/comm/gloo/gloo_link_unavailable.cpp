// Link where Gloo is not installed: says so.
#include "convoy/base/error.h"
#include "convoy/comm/gloo/link.h"

namespace convoy::comm {

bool has_gloo() { return false; }

std::unique_ptr<Link> make_link(const std::string&, int, int, Duration) {
  throw Error(ErrorCode::kNotSupported, "this build has no Gloo: install libgloo-dev and build again");
}

}  // namespace convoy::comm

// The in-process transport: ranks are threads of one process. It is the reference for the others, and the fake for
// tests.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "convoy/comm/transport.h"

namespace convoy::comm {

/// How the in-process transport behaves; the knobs let small inputs walk the paths of large ones.
struct InProcessOptions {
  /// Messages from one rank to another that are on their way or lent at one time.
  std::size_t queue_length = 64;
  /// 0 lends all memory. Otherwise payloads are copied, in messages of at most this many bytes (8 at least).
  std::size_t copy_bytes = 0;
};

/// Makes the transports of `ranks` ranks of one group, rank r's at place r. A transport that is destroyed counts as a
/// rank that has left.
/// Threads:    each transport belongs to the thread of its rank; see Transport
std::vector<std::unique_ptr<Transport>> make_in_process_transports(int ranks, const InProcessOptions& options = {});

}  // namespace convoy::comm

// Executor: an operation that the transport's library does; this rank waits as in any other.
#include "convoy/comm/engine/executor.h"
#include "convoy/comm/native_collectives.h"

namespace convoy::comm {

void Executor::run_native() {
  NativeCollectives& library = *transport_.native();
  library.start(collective_);
  std::vector<int> others;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank != rank_) others.push_back(rank);
  }
  while (true) {
    const std::uint32_t seen = transport_.signal();
    if (library.finished()) break;
    block(seen, others);
  }
  look_up();
}

}  // namespace convoy::comm

// MpiLink where Open MPI is not installed: says so.
#include "convoy/base/error.h"
#include "convoy/comm/openmpi/mpi_link.h"

namespace convoy::comm {

bool has_openmpi() { return false; }

void check_started_by_mpi(int, int) {
  throw Error(ErrorCode::kNotSupported, "this build has no Open MPI: install libopenmpi-dev and build again");
}

std::unique_ptr<MpiLink> make_mpi_link(int rank, int size, Duration) {
  check_started_by_mpi(rank, size);
  return nullptr;
}

}  // namespace convoy::comm

// Open MPI's own collectives, by whatever algorithm it chooses.
#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <utility>

#include "apps/bench/peers/peer_library.h"
#include "convoy/base/error.h"

namespace convoy::bench {
namespace {

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    case DType::kUInt8: return MPI_UINT8_T;
    default: return MPI_DATATYPE_NULL;
  }
}

void expect_success(int status, const std::string& op) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorCode::kPeerLost, fmt::format("Open MPI's {} failed: {}", op, text.data()));
}

class OpenMpi final : public PeerLibrary {
 public:
  OpenMpi(int rank, int size) : size_(size) {
    int provided = 0;
    // Its calls come from one thread; those of a group over Open MPI, which does not know of them, from another.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int mpi_rank = 0;
    int mpi_size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    if (mpi_rank == rank && mpi_size == size) return;
    MPI_Finalize();
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} of {} is rank {} of {} for Open MPI: its ranks must be started by mpirun", rank,
                            size, mpi_rank, mpi_size));
  }
  ~OpenMpi() override { MPI_Finalize(); }

  std::string name() const override { return "openmpi"; }
  std::vector<std::string> algorithms(const std::string&, DType dtype) const override {
    if (type_of(dtype) == MPI_DATATYPE_NULL) return {};
    return {"native"};
  }

  void run(const std::string&, const PeerCall& call) override { expect_success(start(call), call.op); }

 private:
  int start(const PeerCall& call) const {
    const auto whole = static_cast<int>(call.elements);
    const int part = whole / size_;
    const MPI_Datatype type = type_of(call.dtype);
    const MPI_Comm all = MPI_COMM_WORLD;
    if (call.op == "all_reduce") return MPI_Allreduce(MPI_IN_PLACE, call.input, whole, type, MPI_SUM, all);
    if (call.op == "broadcast") return MPI_Bcast(call.input, whole, type, 0, all);
    if (call.op == "reduce") return MPI_Reduce(call.input, call.output, whole, type, MPI_SUM, 0, all);
    if (call.op == "reduce_scatter") {
      return MPI_Reduce_scatter_block(call.input, call.output, part, type, MPI_SUM, all);
    }
    if (call.op == "all_gather") return MPI_Allgather(call.input, part, type, call.output, part, type, all);
    if (call.op == "gather") return MPI_Gather(call.input, part, type, call.output, part, type, 0, all);
    if (call.op == "scatter") return MPI_Scatter(call.input, part, type, call.output, part, type, 0, all);
    if (call.op == "all_to_all") return MPI_Alltoall(call.input, part, type, call.output, part, type, all);
    return MPI_Barrier(all);
  }

  const int size_;
};

}  // namespace

bool has_openmpi() { return true; }

std::unique_ptr<PeerLibrary> make_openmpi(int rank, int size) { return std::make_unique<OpenMpi>(rank, size); }

}  // namespace convoy::bench

// Starts MPI once, and ends it only where that cannot wait for ever.
#include "convoy/comm/openmpi/mpi_process.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "convoy/base/clock.h"
#include "convoy/base/error.h"
#include "convoy/base/log.h"

namespace convoy::comm {
namespace {

// MPI_Finalize waits for all ranks, without a limit of its own.
constexpr Duration kFinish = std::chrono::seconds(10);

void finish_at_exit(int status, void*) { MpiProcess::here().finish(status); }

}  // namespace

MpiProcess& MpiProcess::here() {
  // Never destroyed: MPI's own threads outlive every static object.
  static auto* const process = new MpiProcess;
  return *process;
}

void MpiProcess::start() {
  if (started_) return;
  int running = 0;
  MPI_Initialized(&running);
  int level = MPI_THREAD_SINGLE;
  if (running != 0) {
    MPI_Query_thread(&level);
  } else {
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    ::on_exit(finish_at_exit, nullptr);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    throw Error(ErrorCode::kNotSupported, "MPI of this process may be called from one thread only");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  started_ = true;
}

void MpiProcess::keep(std::unique_ptr<std::byte[]> memory, std::function<bool()> done) {
  kept_.push_back({std::move(memory), std::move(done)});
}

void MpiProcess::reap() {
  if (given_up_) return;
  std::erase_if(kept_, [](const Kept& kept) { return kept.done(); });
}

void MpiProcess::finish(int status) {
  MutexLock lock(mutex);
  int over = 0;
  MPI_Finalized(&over);
  // Who ends with an error does not wait for ranks that may never come to their end; mpirun ends them.
  if (over != 0 || given_up_ || !in_order_ || status != 0) return;
  struct {
    Mutex mutex;
    CondVar changed;
    bool done CONVOY_GUARDED_BY(mutex) = false;
  } end;
  std::jthread guard([&] {
    const Deadline deadline(system_clock(), kFinish);
    MutexLock waiting(end.mutex);
    while (!end.done && !deadline.expired()) end.changed.wait_for(end.mutex, deadline.remaining());
    if (end.done) return;
    log_warning("MPI_Finalize did not end within {:.0f} s: a rank does not come to it", to_seconds(kFinish));
    ::_exit(exit_status(ErrorCode::kTimeout));
  });
  MPI_Finalize();
  MutexLock finishing(end.mutex);
  end.done = true;
  end.changed.notify_all();
}

}  // namespace convoy::comm

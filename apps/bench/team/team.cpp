// The barrier beside the group, and memory that all ranks can write.
#include "apps/bench/team/team.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/comm/shared_memory/shared_arena.h"

namespace convoy::bench {
namespace {

// Looks before the clock is asked, and before the processor is offered to others.
constexpr int kSpins = 256;
constexpr Duration kSpinning = std::chrono::milliseconds(3);
// Longer than the group's wait, whose message says more.
constexpr Duration kPatience = std::chrono::seconds(3);
constexpr Duration kNap = std::chrono::microseconds(50);

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(comm::Group& group, comm::Store& store, Duration timeout, MeetingPoint* here)
    : group_(group), store_(store), timeout_(timeout), meeting_(here) {
  if (meeting_ != nullptr) return;
  const bool makes = rank() == 0;
  if (makes) meeting_memory_ = comm::FileMapping::create("convoy-bench", sizeof(MeetingPoint));
  const std::vector<std::int64_t> processes = gather(::getpid());
  const std::vector<std::int64_t> descriptors = gather(makes ? meeting_memory_.descriptor() : -1);
  if (!makes) {
    meeting_memory_ =
        comm::FileMapping::open(processes[0], static_cast<int>(descriptors[0]), sizeof(MeetingPoint), true);
  }
  meeting_ = reinterpret_cast<MeetingPoint*>(meeting_memory_.data());
  comm::barrier(group_);
}

void Team::barrier() { meet(false); }

void Team::gather_quietly() { meet(true); }

void Team::meet(bool quietly) {
  const auto all = static_cast<std::uint32_t>(size());
  const std::uint32_t round = meeting_->rounds.load();
  if (meeting_->arrived.fetch_add(1) + 1 == all) {
    meeting_->arrived.store(0);
    meeting_->rounds.fetch_add(1);
    return;
  }
  const TimePoint begin = system_clock().now();
  const bool crowded = all > std::thread::hardware_concurrency();
  while (true) {
    for (int spin = 0; spin < (quietly ? 1 : kSpins); ++spin) {
      if (meeting_->rounds.load(std::memory_order_acquire) != round) return;
      pause_processor();
    }
    if (crowded) ::sched_yield();
    const Duration waited = system_clock().now() - begin;
    if (quietly || waited > kSpinning) system_clock().sleep_for(kNap);
    if (waited > timeout_ + kPatience) {
      throw Error(ErrorCode::kTimeout, fmt::format("rank {} waited {:.1f} s for the others between two measurements",
                                                   rank(), to_seconds(waited)));
    }
  }
}

const comm::FileMapping& Team::arena_of(std::size_t rank, std::int64_t process) {
  const comm::SharedArena& own = comm::process_arena();
  if (arenas_.empty()) {
    arenas_.resize(static_cast<std::size_t>(size()));
    const std::vector<std::int64_t> descriptors = gather(own.descriptor());
    const std::vector<std::int64_t> capacities = gather(static_cast<std::int64_t>(own.capacity()));
    const std::vector<std::int64_t> processes = gather(::getpid());
    for (std::size_t other = 0; other < arenas_.size(); ++other) {
      if (processes[other] == ::getpid()) continue;
      arenas_[other] = comm::FileMapping::open(processes[other], static_cast<int>(descriptors[other]),
                                               static_cast<std::size_t>(capacities[other]), true);
    }
    comm::barrier(group_);
  }
  CONVOY_CHECK(process != ::getpid(), "the own arena needs no mapping");
  return arenas_[rank];
}

std::vector<std::byte*> Team::share(std::size_t bytes) {
  comm::SharedArena& own = comm::process_arena();
  void* const memory = own.allocate(bytes);
  const std::vector<std::int64_t> fine = gather(memory == nullptr ? 0 : 1);
  if (std::count(fine.begin(), fine.end(), 0) > 0) {
    own.deallocate(memory);
    throw Error(ErrorCode::kOutOfMemory, fmt::format("there is no memory for buffers of {} bytes on each rank", bytes));
  }
  const std::vector<std::int64_t> processes = gather(::getpid());
  const std::vector<std::int64_t> offsets = gather(static_cast<std::int64_t>(own.offset_of(memory)));
  std::vector<std::byte*> starts;
  const bool apart = std::count(processes.begin(), processes.end(), processes[0]) < size();
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const bool here = !apart || rank == static_cast<std::size_t>(this->rank());
    std::byte* const base = here ? own.base() : arena_of(rank, processes[rank]).data();
    starts.push_back(base + offsets[rank]);
  }
  return starts;
}

std::vector<double> Team::largest(std::vector<double> values) {
  if (values.empty()) return values;
  const comm::Buffer buffer{std::span<double>(values)};
  comm::all_reduce_async(group_, buffer, buffer, DType::kFloat64, ReduceOp::kMax).wait();
  return values;
}

std::vector<std::int64_t> Team::gather(std::int64_t value) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  const std::vector<std::int64_t> parts(static_cast<std::size_t>(size()), 1);
  comm::all_gather_async(group_, comm::Buffer{std::span<std::int64_t>(&value, 1)},
                         comm::Buffer{std::span<std::int64_t>(all)}, parts, DType::kInt64)
      .wait();
  return all;
}

}  // namespace convoy::bench

// MpiLink over Open MPI.
#include "convoy/comm/openmpi/mpi_link.h"

#define OMPI_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/comm/openmpi/mpi_process.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kLanes = 2;
// Messages of one peer that have come and were not taken: beyond that they stay where MPI has them.
constexpr std::size_t kMostWaiting = 8;
// Of one visit, so that it ends.
constexpr int kMostProbes = 16;
constexpr std::size_t kPooledBlocks = 64;
constexpr Duration kNap = std::chrono::microseconds(100);

void expect_success(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorCode::kPeerLost, fmt::format("Open MPI's {} failed: {}", what, text.data()));
}

// Elements of 16 bits can be moved and not be computed with.
MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return MPI_FLOAT;
    case DType::kFloat64: return MPI_DOUBLE;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    case DType::kUInt8: return MPI_UINT8_T;
    case DType::kBFloat16:
    case DType::kFloat16: return MPI_UINT16_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op operation_of(ReduceOp reduce) {
  switch (reduce) {
    case ReduceOp::kMin: return MPI_MIN;
    case ReduceOp::kMax: return MPI_MAX;
    case ReduceOp::kProduct: return MPI_PROD;
    default: return MPI_SUM;
  }
}

class Link final : public MpiLink {
 public:
  Link(int size, Duration limit) : process_(MpiProcess::here()), peers_(static_cast<std::size_t>(size)) {
    MPI_Request joined = MPI_REQUEST_NULL;
    {
      MutexLock lock(process_.mutex);
      process_.reap();
      expect_success(MPI_Comm_idup(MPI_COMM_WORLD, &all_, &joined), "MPI_Comm_idup");
    }
    await(joined, limit);
    MutexLock lock(process_.mutex);
    MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
  }
  ~Link() override;

  MpiBlock take(std::size_t bytes) override;
  void give(MpiBlock block) override {
    MutexLock lock(process_.mutex);
    pool(std::move(block));
  }
  void send(int peer, MpiLane lane, MpiBlock block) override;
  std::size_t sending(int peer, MpiLane lane) override {
    MutexLock lock(process_.mutex);
    return this->lane(peer, lane).sending;
  }
  bool progress() override;
  bool idle() override {
    MutexLock lock(process_.mutex);
    return requests_.empty();
  }
  std::optional<MpiBlock> receive(int peer, MpiLane lane) override;
  bool can(const MpiCall& call) const override;
  void start(const MpiCall& call) override;
  bool finished() override {
    MutexLock lock(process_.mutex);
    return !computing_;
  }
  void give_up() override {
    MutexLock lock(process_.mutex);
    process_.give_up();
  }
  void retire() override {
    MutexLock lock(process_.mutex);
    retired_ = true;
  }

 private:
  // A message that is coming or has come.
  struct Incoming {
    MpiBlock block;
    bool whole = false;
  };
  struct Lane {
    std::size_t sending = 0;
    std::deque<Incoming> inbox;
  };
  struct Peer {
    std::array<Lane, kLanes> lanes;
  };
  // What a request is for: a block on its way out, one that comes in, or, with neither, the collective.
  struct Started {
    Lane* lane = nullptr;
    MpiBlock block;
    Incoming* incoming = nullptr;
  };

  Lane& lane(int peer, MpiLane lane) {
    return peers_[static_cast<std::size_t>(peer)].lanes[static_cast<std::size_t>(lane)];
  }
  void expect_running() const CONVOY_REQUIRES(process_.mutex) {
    if (!process_.given_up()) return;
    throw Error(ErrorCode::kAborted, "Open MPI was given up in this process, with a collective that did not end");
  }
  void await(MPI_Request& request, Duration limit);
  void pool(MpiBlock block) CONVOY_REQUIRES(process_.mutex);
  MpiBlock block_of(std::size_t bytes) CONVOY_REQUIRES(process_.mutex);
  void add(MPI_Request request, Started started) CONVOY_REQUIRES(process_.mutex);
  bool probe(int source, int tag) CONVOY_REQUIRES(process_.mutex);
  bool probe_all() CONVOY_REQUIRES(process_.mutex);
  bool test_all() CONVOY_REQUIRES(process_.mutex);
  int begin(const MpiCall& call, MPI_Request* request) const;

  MpiProcess& process_;
  MPI_Comm all_ = MPI_COMM_NULL;
  // All guarded by the process's lock.
  std::vector<Peer> peers_;
  std::vector<MPI_Request> requests_;
  std::vector<Started> started_;
  std::vector<int> completed_;
  std::vector<MpiBlock> pool_;
  MpiCall call_;
  bool computing_ = false;
  bool retired_ = false;
};

void Link::await(MPI_Request& request, Duration limit) {
  const Deadline deadline(system_clock(), limit);
  int done = 0;
  while (true) {
    {
      MutexLock lock(process_.mutex);
      expect_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Comm_idup");
      if (done != 0) return;
      if (deadline.expired()) {
        // What comes next on this communicator would meet what is left of this.
        process_.give_up();
        throw Error(ErrorCode::kTimeout,
                    fmt::format("not all ranks came to Open MPI's communicator within {:.1f} s", to_seconds(limit)));
      }
    }
    system_clock().sleep_for(kNap);
  }
}

Link::~Link() {
  MutexLock lock(process_.mutex);
  if (computing_) process_.give_up();
  if (process_.given_up() || !retired_ || !requests_.empty()) process_.leave_open();
  if (retired_ && requests_.empty() && !process_.given_up()) {
    MPI_Comm_free(&all_);
    return;
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    MpiBlock block = std::move(started_[i].incoming != nullptr ? started_[i].incoming->block : started_[i].block);
    process_.keep(std::move(block.memory), [request = requests_[i]]() mutable {
      int done = 0;
      return MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    });
  }
}

MpiBlock Link::take(std::size_t bytes) {
  MutexLock lock(process_.mutex);
  return block_of(bytes);
}

MpiBlock Link::block_of(std::size_t bytes) {
  const auto fits = std::find_if(pool_.rbegin(), pool_.rend(), [&](const MpiBlock& block) {
    return block.capacity >= bytes && block.capacity <= 4 * bytes;
  });
  MpiBlock block;
  if (fits != pool_.rend()) {
    block = std::move(*fits);
    pool_.erase(std::next(fits).base());
  } else {
    block.capacity = bytes;
    block.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  }
  block.bytes = bytes;
  return block;
}

void Link::pool(MpiBlock block) {
  if (pool_.size() == kPooledBlocks) pool_.erase(pool_.begin());
  pool_.push_back(std::move(block));
}

void Link::add(MPI_Request request, Started started) {
  requests_.push_back(request);
  started_.push_back(std::move(started));
}

void Link::send(int peer, MpiLane lane, MpiBlock block) {
  MutexLock lock(process_.mutex);
  expect_running();
  MPI_Request request = MPI_REQUEST_NULL;
  expect_success(MPI_Isend(block.memory.get(), static_cast<int>(block.bytes), MPI_BYTE, peer, static_cast<int>(lane),
                           all_, &request),
                 "MPI_Isend");
  int done = 0;
  expect_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Isend");
  if (done != 0) return pool(std::move(block));
  ++this->lane(peer, lane).sending;
  add(request, {&this->lane(peer, lane), std::move(block), nullptr});
}

bool Link::progress() {
  MutexLock lock(process_.mutex);
  expect_running();
  const bool came = probe_all();
  return test_all() || came;
}

bool Link::probe_all() {
  const auto full = [](const Peer& peer) {
    return peer.lanes[static_cast<std::size_t>(MpiLane::kData)].inbox.size() >= kMostWaiting;
  };
  bool came = false;
  if (std::none_of(peers_.begin(), peers_.end(), full)) {
    for (int i = 0; i < kMostProbes && probe(MPI_ANY_SOURCE, MPI_ANY_TAG); ++i) {
      came = true;
      if (std::any_of(peers_.begin(), peers_.end(), full)) break;
    }
    return came;
  }
  while (probe(MPI_ANY_SOURCE, static_cast<int>(MpiLane::kControl))) came = true;
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (!full(peers_[peer])) came = probe(static_cast<int>(peer), static_cast<int>(MpiLane::kData)) || came;
  }
  return came;
}

// Takes the next message that matches, if one has come.
bool Link::probe(int source, int tag) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  expect_success(MPI_Improbe(source, tag, all_, &found, &message, &status), "MPI_Improbe");
  if (found == 0) return false;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  Lane& from = lane(status.MPI_SOURCE, static_cast<MpiLane>(status.MPI_TAG));
  Incoming& incoming = from.inbox.emplace_back();
  incoming.block = block_of(static_cast<std::size_t>(bytes));
  MPI_Request request = MPI_REQUEST_NULL;
  expect_success(MPI_Imrecv(incoming.block.memory.get(), bytes, MPI_BYTE, &message, &request), "MPI_Imrecv");
  int done = 0;
  expect_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Imrecv");
  incoming.whole = done != 0;
  if (done == 0) add(request, {nullptr, {}, &incoming});
  return true;
}

bool Link::test_all() {
  if (requests_.empty()) return false;
  completed_.resize(requests_.size());
  int count = 0;
  expect_success(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
                              MPI_STATUSES_IGNORE),
                 "MPI_Testsome");
  if (count <= 0) return false;
  std::sort(completed_.begin(), completed_.begin() + count, std::greater<>());
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(completed_[static_cast<std::size_t>(i)]);
    Started& started = started_[at];
    if (started.incoming != nullptr) {
      started.incoming->whole = true;
    } else if (started.lane != nullptr) {
      --started.lane->sending;
      pool(std::move(started.block));
    } else {
      computing_ = false;
    }
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(at));
    started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return true;
}

std::optional<MpiBlock> Link::receive(int peer, MpiLane lane) {
  MutexLock lock(process_.mutex);
  std::deque<Incoming>& inbox = this->lane(peer, lane).inbox;
  if (inbox.empty() || !inbox.front().whole) return std::nullopt;
  std::optional<MpiBlock> block = std::move(inbox.front().block);
  inbox.pop_front();
  return block;
}

bool Link::can(const MpiCall& call) const {
  const bool reduces = call.collective == MpiCollective::kAllReduce || call.collective == MpiCollective::kReduce ||
                       call.collective == MpiCollective::kReduceScatter;
  return !reduces || (call.dtype != DType::kBFloat16 && call.dtype != DType::kFloat16);
}

void Link::start(const MpiCall& call) {
  MutexLock lock(process_.mutex);
  expect_running();
  MPI_Request request = MPI_REQUEST_NULL;
  // MPI reads the counts as long as it is at it.
  call_ = call;
  expect_success(begin(call_, &request), "collective");
  computing_ = true;
  add(request, {});
}

int Link::begin(const MpiCall& call, MPI_Request* request) const {
  const MPI_Datatype type = type_of(call.dtype);
  const MPI_Op op = operation_of(call.reduce);
  const void* const in = call.input != nullptr ? call.input : MPI_IN_PLACE;
  void* const out = call.output != nullptr ? call.output : MPI_IN_PLACE;
  const int* const counts = call.counts.data();
  const int* const offsets = call.offsets.data();
  switch (call.collective) {
    case MpiCollective::kAllReduce: return MPI_Iallreduce(in, out, call.elements, type, op, all_, request);
    case MpiCollective::kReduceScatter: return MPI_Ireduce_scatter(in, out, counts, type, op, all_, request);
    case MpiCollective::kAllGather:
      return MPI_Iallgatherv(in, call.elements, type, out, counts, offsets, type, all_, request);
    case MpiCollective::kBroadcast: return MPI_Ibcast(out, call.elements, type, call.root, all_, request);
    case MpiCollective::kReduce: return MPI_Ireduce(in, out, call.elements, type, op, call.root, all_, request);
    case MpiCollective::kGather:
      return MPI_Igatherv(in, call.elements, type, out, counts, offsets, type, call.root, all_, request);
    case MpiCollective::kScatter:
      return MPI_Iscatterv(in, counts, offsets, type, out, call.elements, type, call.root, all_, request);
    case MpiCollective::kAllToAll:
      return MPI_Ialltoallv(in, counts, offsets, type, out, call.from_counts.data(), call.from_offsets.data(), type,
                            all_, request);
    case MpiCollective::kBarrier: return MPI_Ibarrier(all_, request);
  }
  return MPI_ERR_OP;
}

}  // namespace

bool has_openmpi() { return true; }

void check_started_by_mpi(int rank, int size) {
  // Open MPI's mpirun says so in its own words, other launchers in PMIx's.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the transport openmpi needs ranks that mpirun has started, and it did not start rank {} of "
                          "{}: mpirun -n {} convoy-rank ...",
                          rank, size, size));
}

std::unique_ptr<MpiLink> make_mpi_link(int rank, int size, Duration limit) {
  check_started_by_mpi(rank, size);
  MpiProcess& process = MpiProcess::here();
  {
    MutexLock lock(process.mutex);
    if (process.given_up()) {
      throw Error(ErrorCode::kNotSupported,
                  "Open MPI was given up in this process, with a collective that did not end: start the process anew");
    }
    process.start();
    int mpi_rank = 0;
    int mpi_size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    if (mpi_rank != rank || mpi_size != size) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("rank {} of {} is rank {} of {} for Open MPI: a group over openmpi has all ranks of one "
                              "mpirun, numbered alike",
                              rank, size, mpi_rank, mpi_size));
    }
  }
  return std::make_unique<Link>(size, limit);
}

}  // namespace convoy::comm

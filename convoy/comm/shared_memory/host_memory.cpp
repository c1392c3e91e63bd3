// Joining: the first rank of each host makes the stretch and says where it is; the others map it; all agree.
#include "convoy/comm/shared_memory/host_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/mutex.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kPage = 4096;

// The first page of a stretch.
struct Header {
  // How many ranks have left in order.
  std::atomic<std::int32_t> left;
};

// Where a host's stretch is; a rank that made none leaves all zero.
struct Offer {
  std::int64_t process = 0;
  std::int64_t descriptor = 0;
  std::int64_t device = 0;
  std::int64_t inode = 0;
  std::int64_t offset = 0;
  // errno of the first rank's failure.
  std::int64_t failure = 0;
};
constexpr std::size_t kOfferNumbers = sizeof(Offer) / sizeof(std::int64_t);

std::optional<struct stat> facts_of(int descriptor) {
  struct stat facts {};
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0) return std::nullopt;
  return facts;
}

// The launcher's descriptor; -1 when there is none that is a file.
int state_descriptor() {
  const char* const text = std::getenv(kStateFileVariable);
  if (text == nullptr) return -1;
  int descriptor = -1;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, descriptor).ptr != end) return -1;
  const auto facts = facts_of(descriptor);
  return facts && S_ISREG(facts->st_mode) ? descriptor : -1;
}

// Adds `bytes` to the state file and returns where they begin, -1 on failure. Ranks of several groups may do so at once;
// the file's lock keeps processes apart, the mutex the threads of one.
std::int64_t grow(int descriptor, std::size_t bytes) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(descriptor, F_SETLKW, &whole) != 0) {
    if (errno != EINTR) return -1;
  }
  struct stat facts {};
  std::int64_t begin = -1;
  if (::fstat(descriptor, &facts) == 0 && ::ftruncate(descriptor, facts.st_size + static_cast<off_t>(bytes)) == 0) {
    begin = facts.st_size;
  }
  const int reason = errno;
  whole.l_type = F_UNLCK;
  ::fcntl(descriptor, F_SETLK, &whole);
  errno = reason;
  return begin;
}

std::byte* map(int descriptor, std::int64_t offset, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, offset);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

std::vector<Offer> exchange(Group& group, const Offer& own) {
  std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
  offers[static_cast<std::size_t>(group.rank())] = own;
  const Buffer numbers(
      {Extent{reinterpret_cast<std::byte*>(offers.data()), static_cast<std::int64_t>(offers.size() * kOfferNumbers)}});
  all_reduce_async(group, numbers, numbers, DType::kInt64).wait();
  return offers;
}

}  // namespace

std::vector<int> ranks_of_host(const Group& group) {
  const spec::HostOfRank hosts = group.hosts();
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    const bool together = hosts.empty() ||
                          hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(group.rank())];
    if (together) ranks.push_back(rank);
  }
  return ranks;
}

std::shared_ptr<HostMemory> HostMemory::join(Group& group, std::size_t bytes) {
  std::shared_ptr<HostMemory> memory(new HostMemory());
  memory->size_ = bytes;
  memory->mapped_ = kPage + (bytes + kPage - 1) / kPage * kPage;
  memory->ranks_ = ranks_of_host(group);
  while (memory->ranks_[static_cast<std::size_t>(memory->local_rank_)] != group.rank()) ++memory->local_rank_;

  Offer own;
  const int state = state_descriptor();
  const bool first = memory->local_rank_ == 0;
  if (first && state >= 0) {
    own.offset = grow(state, memory->mapped_);
    if (own.offset < 0) own.failure = errno;
    own.descriptor = state;
    memory->in_state_file_ = true;
  } else if (first) {
    memory->descriptor_ = ::memfd_create("convoy-host-memory", MFD_CLOEXEC);
    if (memory->descriptor_ < 0 || ::ftruncate(memory->descriptor_, static_cast<off_t>(memory->mapped_)) != 0) {
      own.failure = errno;
    }
    own.descriptor = memory->descriptor_;
  }
  if (first) {
    own.process = ::getpid();
    if (const auto facts = facts_of(static_cast<int>(own.descriptor))) {
      own.device = static_cast<std::int64_t>(facts->st_dev);
      own.inode = static_cast<std::int64_t>(facts->st_ino);
    }
  }
  const std::vector<Offer> offers = exchange(group, own);
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].failure == 0) continue;
    throw Error(ErrorCode::kIo, fmt::format("rank {} cannot make {} bytes of memory for its host: {}", rank, bytes,
                                            std::strerror(static_cast<int>(offers[rank].failure))));
  }

  const Offer& offer = offers[static_cast<std::size_t>(memory->ranks_.front())];
  memory->offset_ = offer.offset;
  const auto is_offered = [&offer](const std::optional<struct stat>& facts) {
    return facts && static_cast<std::int64_t>(facts->st_dev) == offer.device &&
           static_cast<std::int64_t>(facts->st_ino) == offer.inode;
  };
  int opened = -1;
  if (!first) {
    memory->in_state_file_ = is_offered(facts_of(state));
    if (!memory->in_state_file_) {
      opened = ::open(fmt::format("/proc/{}/fd/{}", offer.process, offer.descriptor).c_str(), O_RDWR | O_CLOEXEC);
      // Where processes have other numbers, this may be anybody's file.
      if (opened >= 0 && !is_offered(facts_of(opened))) ::close(std::exchange(opened, -1));
    }
  }
  const int descriptor = memory->in_state_file_ ? state : (first ? memory->descriptor_ : opened);
  if (descriptor >= 0) memory->mapping_ = map(descriptor, offer.offset, memory->mapped_);
  if (opened >= 0) ::close(opened);
  const bool mapped = all_reduce_number(group, memory->mapping_ != nullptr ? 1.0 : 0.0, ReduceOp::kMin) == 1.0;
  if (!mapped) return nullptr;
  memory->data_ = memory->mapping_ + kPage;
  return memory;
}

HostMemory::~HostMemory() {
  if (mapping_ != nullptr) {
    const auto all = static_cast<std::int32_t>(ranks_.size());
    const bool last = reinterpret_cast<Header*>(mapping_)->left.fetch_add(1) + 1 == all;
    // The state file only grows; what nobody uses any more takes no memory.
    if (last && in_state_file_) ::madvise(mapping_, mapped_, MADV_REMOVE);
    ::munmap(mapping_, mapped_);
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace convoy::comm

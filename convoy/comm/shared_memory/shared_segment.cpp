// Mapping files of other processes, and the arithmetic of the control segment.
#include "convoy/comm/shared_memory/shared_segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Presence>::is_always_lock_free,
              "atomics are shared between processes");
static_assert(sizeof(LaneSlot) == 64, "a slot is one cache line");
static_assert(sizeof(PublishCell) == 64, "a short publication is one cache line");

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeaderBytes = 64;

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

std::size_t board_offset() { return kHeaderBytes + sizeof(AbortCell); }
std::size_t cells_offset(const SegmentShape& shape) {
  return board_offset() + round_up(observe::SharedBoard::bytes(shape.ranks), 64);
}
std::size_t publications_offset(const SegmentShape& shape) {
  return round_up(cells_offset(shape) + static_cast<std::size_t>(shape.ranks) * sizeof(RankCell), kPage);
}
std::size_t publication_bytes(const SegmentShape& shape) {
  return sizeof(PublishCell) + round_up(shape.publish_bytes, 64);
}
std::size_t windows_offset(const SegmentShape& shape) {
  return publications_offset(shape) + 2 * static_cast<std::size_t>(shape.ranks) * publication_bytes(shape);
}
std::size_t lanes_offset(const SegmentShape& shape) {
  return round_up(windows_offset(shape) + static_cast<std::size_t>(shape.ranks) * sizeof(WindowCell), kPage);
}
std::size_t lane_head_bytes(const SegmentShape& shape) {
  return round_up(sizeof(LaneEnds) + shape.slots * sizeof(LaneSlot) + shape.loans() * sizeof(LaneLoan), kPage);
}
std::size_t chunk_stride(const SegmentShape& shape) { return round_up(shape.chunk_bytes, 64); }
std::size_t lane_bytes(const SegmentShape& shape) {
  return lane_head_bytes(shape) + round_up(shape.staging_chunks * chunk_stride(shape), kPage);
}

}  // namespace

FileMapping::FileMapping(FileMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  if (this == &other) return *this;
  drop();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

FileMapping::~FileMapping() { drop(); }

void FileMapping::drop() noexcept {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  close_descriptor();
}

void FileMapping::close_descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

FileMapping FileMapping::create(const char* name, std::size_t bytes) {
  FileMapping mapping;
  mapping.descriptor_ = ::memfd_create(name, MFD_CLOEXEC);
  void* memory = MAP_FAILED;
  if (mapping.descriptor_ >= 0 && ::ftruncate(mapping.descriptor_, static_cast<off_t>(bytes)) == 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, mapping.descriptor_, 0);
  }
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kIo, fmt::format("cannot make {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  mapping.data_ = static_cast<std::byte*>(memory);
  mapping.size_ = bytes;
  return mapping;
}

FileMapping FileMapping::open(std::int64_t pid, int descriptor, std::size_t bytes, bool writable) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, descriptor);
  FileMapping mapping;
  mapping.descriptor_ = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  struct stat facts {};
  void* memory = MAP_FAILED;
  if (mapping.descriptor_ >= 0 && ::fstat(mapping.descriptor_, &facts) == 0) {
    if (static_cast<std::size_t>(facts.st_size) != bytes) {
      throw Error(ErrorCode::kPeerLost,
                  fmt::format("{} is not the shared memory that process {} announced", path, pid));
    }
    const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    memory = ::mmap(nullptr, bytes, access, MAP_SHARED | MAP_NORESERVE, mapping.descriptor_, 0);
  }
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kPeerLost,
                fmt::format("cannot open the shared memory of process {} ({}): {}", pid, path, std::strerror(errno)));
  }
  mapping.data_ = static_cast<std::byte*>(memory);
  mapping.size_ = bytes;
  mapping.close_descriptor();
  return mapping;
}

std::size_t SegmentShape::bytes() const {
  return lanes_offset(*this) + static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * lane_bytes(*this);
}

std::uint64_t& SegmentView::nonce() const { return *reinterpret_cast<std::uint64_t*>(memory_); }

AbortCell& SegmentView::abort() const { return *reinterpret_cast<AbortCell*>(memory_ + kHeaderBytes); }

std::byte* SegmentView::board() const { return memory_ + board_offset(); }

RankCell& SegmentView::rank(int rank) const {
  return reinterpret_cast<RankCell*>(memory_ + cells_offset(shape_))[rank];
}

PublishCell& SegmentView::publication(int rank, std::uint64_t sequence) const {
  const std::size_t number = 2 * static_cast<std::size_t>(rank) + sequence % 2;
  return *reinterpret_cast<PublishCell*>(memory_ + publications_offset(shape_) + number * publication_bytes(shape_));
}

WindowCell& SegmentView::window(int rank) const {
  return reinterpret_cast<WindowCell*>(memory_ + windows_offset(shape_))[rank];
}

std::byte* SegmentView::lane(int from, int to) const {
  const std::size_t number =
      static_cast<std::size_t>(from) * static_cast<std::size_t>(shape_.ranks) + static_cast<std::size_t>(to);
  return memory_ + lanes_offset(shape_) + number * lane_bytes(shape_);
}

LaneEnds& SegmentView::ends(int from, int to) const { return *reinterpret_cast<LaneEnds*>(lane(from, to)); }

LaneSlot& SegmentView::slot(int from, int to, std::uint64_t number) const {
  return reinterpret_cast<LaneSlot*>(lane(from, to) + sizeof(LaneEnds))[number % shape_.slots];
}

LaneLoan& SegmentView::loan(int from, int to, std::size_t number) const {
  std::byte* const first = lane(from, to) + sizeof(LaneEnds) + shape_.slots * sizeof(LaneSlot);
  return reinterpret_cast<LaneLoan*>(first)[number];
}

std::byte* SegmentView::staging(int from, int to, std::size_t chunk) const {
  return lane(from, to) + lane_head_bytes(shape_) + chunk * chunk_stride(shape_);
}

}  // namespace convoy::comm

// SharedArena: best fit with coalescing over an anonymous file.
//
// Words: a *block* is a stretch [offset, offset + bytes) of the file; every byte is in one free or one taken block, and
// no two free blocks touch. Best fit reuses pages that were touched before it takes new ones from the large free rest.
#include "convoy/comm/shared_memory/shared_arena.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kGrain = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

[[noreturn]] void fail(const char* what, std::size_t capacity) {
  throw Error(ErrorCode::kIo,
              fmt::format("cannot make a shared arena of {} bytes: {}: {}", capacity, what, std::strerror(errno)));
}

}  // namespace

SharedArena::SharedArena(std::size_t capacity) : capacity_(round_up(std::max<std::size_t>(capacity, 1), kPage)) {
  descriptor_ = ::memfd_create("convoy-arena", MFD_CLOEXEC);
  if (descriptor_ < 0) fail("memfd_create", capacity_);
  if (::ftruncate(descriptor_, static_cast<off_t>(capacity_)) != 0) {
    const int reason = errno;
    ::close(descriptor_);
    errno = reason;
    fail("ftruncate", capacity_);
  }
  void* memory = ::mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (memory == MAP_FAILED) {
    const int reason = errno;
    ::close(descriptor_);
    errno = reason;
    fail("mmap", capacity_);
  }
  base_ = static_cast<std::byte*>(memory);
  MutexLock lock(mutex_);
  add_free(0, capacity_);
}

SharedArena::~SharedArena() {
  ::munmap(base_, capacity_);
  ::close(descriptor_);
}

void SharedArena::add_free(std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  free_by_offset_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
}

void SharedArena::remove_free(std::size_t offset, std::size_t bytes) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({bytes, offset});
}

std::size_t SharedArena::take(std::size_t bytes, std::size_t alignment) {
  // The smallest block that holds the bytes may not hold them aligned; one with an alignment to spare always does.
  for (auto block = free_by_size_.lower_bound({bytes, 0}); block != free_by_size_.end(); ++block) {
    const auto [size, offset] = *block;
    const std::size_t begin = round_up(offset, alignment);
    if (begin + bytes <= offset + size) {
      remove_free(offset, size);
      add_free(offset, begin - offset);
      add_free(begin + bytes, offset + size - begin - bytes);
      return begin;
    }
  }
  return kNowhere;
}

void* SharedArena::allocate(std::size_t bytes) {
  if (bytes > capacity_) return nullptr;
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), bytes >= kLarge ? kPage : kGrain);
  MutexLock lock(mutex_);
  const std::size_t offset = take(size, bytes >= kLarge ? kPage : kGrain);
  if (offset == kNowhere) return nullptr;
  taken_.emplace(offset, size);
  used_ += size;
  peak_ = std::max(peak_, used_);
  return base_ + offset;
}

void SharedArena::deallocate(void* memory) {
  if (memory == nullptr) return;
  CONVOY_CHECK(memory >= base_ && memory < base_ + capacity_, "the memory is not of this arena");
  MutexLock lock(mutex_);
  const auto found = taken_.find(offset_of(memory));
  CONVOY_CHECK(found != taken_.end(), "the memory is no block of the arena, or was given back before");
  std::size_t begin = found->first;
  std::size_t end = begin + found->second;
  used_ -= found->second;
  taken_.erase(found);
  const auto after = free_by_offset_.find(end);
  if (after != free_by_offset_.end()) {
    const std::size_t size = after->second;
    remove_free(end, size);
    end += size;
  }
  auto before = free_by_offset_.lower_bound(begin);
  if (before != free_by_offset_.begin()) {
    const auto [offset, size] = *std::prev(before);
    if (offset + size == begin) {
      remove_free(offset, size);
      begin = offset;
    }
  }
  add_free(begin, end - begin);
}

void SharedArena::detach(std::byte* memory, std::size_t bytes) {
  CONVOY_CHECK(offset_of(memory) % kPage == 0 && bytes % kPage == 0, "whole pages are detached");
  // Before the pages are replaced, so that nobody offers them in between.
  {
    MutexLock lock(mutex_);
    detached_.emplace_back(memory, bytes);
    has_detached_.store(true);
  }
  constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (::mmap(memory, bytes, PROT_READ | PROT_WRITE, kKind, -1, 0) == MAP_FAILED) {
    throw Error(ErrorCode::kIo,
                fmt::format("cannot take {} bytes of the shared arena out of other processes' reach: {}", bytes,
                            std::strerror(errno)));
  }
}

bool SharedArena::is_detached(const std::byte* memory, std::size_t bytes) const {
  MutexLock lock(mutex_);
  return std::any_of(detached_.begin(), detached_.end(), [&](const auto& range) {
    return memory < range.first + range.second && range.first < memory + bytes;
  });
}

std::size_t SharedArena::used() const {
  MutexLock lock(mutex_);
  return used_;
}

std::size_t SharedArena::peak() const {
  MutexLock lock(mutex_);
  return peak_;
}

SharedArena& process_arena() {
  static SharedArena* const arena = new SharedArena(static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                                    static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  return *arena;
}

}  // namespace convoy::comm

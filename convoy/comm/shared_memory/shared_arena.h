// The shared arena: this process's large memory, lying where the other ranks of the host can read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "convoy/base/mutex.h"

namespace convoy::comm {

/// Memory from an anonymous file (memfd) that peers map: nothing in the file system, nothing left after a kill.
/// Pages are taken when first written and reused afterwards.
/// Threads:    any
class SharedArena {
 public:
  /// Reserves addresses for `capacity` bytes; no memory is taken yet.
  /// Errors:     kIo when the kernel refuses
  explicit SharedArena(std::size_t capacity);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  /// Returns memory aligned to 64 bytes (to a page from 1 MiB on), or null when the arena is full.
  void* allocate(std::size_t bytes);
  /// Gives memory back; its content may be overwritten at once. Null is ignored.
  void deallocate(void* memory);
  /// Returns whether all of [memory, memory + bytes) lies in the arena, where peers see it.
  bool contains(const void* memory, std::size_t bytes = 1) const {
    const auto* at = static_cast<const std::byte*>(memory);
    const bool inside = at >= base_ && at + bytes <= base_ + capacity_;
    return inside && (!has_detached_.load(std::memory_order_relaxed) || !is_detached(at, bytes));
  }
  /// Takes whole pages out of the reach of other processes, for good: they keep their addresses and go on as memory of
  /// this process alone, with undefined content, and contains() no longer knows them.
  /// Errors:     kIo when the kernel refuses
  void detach(std::byte* memory, std::size_t bytes);
  /// Returns how far into the arena an address lies.
  std::uint64_t offset_of(const void* memory) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) - base_);
  }
  /// Returns the first address.
  std::byte* base() const { return base_; }
  /// Returns the bytes of addresses that are reserved.
  std::size_t capacity() const { return capacity_; }
  /// Returns the file that peers map.
  int descriptor() const { return descriptor_; }
  /// Returns the bytes handed out now, and the most so far.
  std::size_t used() const;
  /// Returns the most bytes handed out at once so far.
  std::size_t peak() const;

 private:
  bool is_detached(const std::byte* memory, std::size_t bytes) const;
  std::size_t take(std::size_t bytes, std::size_t alignment) CONVOY_REQUIRES(mutex_);
  void add_free(std::size_t offset, std::size_t bytes) CONVOY_REQUIRES(mutex_);
  void remove_free(std::size_t offset, std::size_t bytes) CONVOY_REQUIRES(mutex_);

  int descriptor_ = -1;
  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  mutable Mutex mutex_;
  std::map<std::size_t, std::size_t> free_by_offset_ CONVOY_GUARDED_BY(mutex_);
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_ CONVOY_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> taken_ CONVOY_GUARDED_BY(mutex_);
  std::vector<std::pair<const std::byte*, std::size_t>> detached_ CONVOY_GUARDED_BY(mutex_);
  std::atomic<bool> has_detached_{false};
  std::size_t used_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::size_t peak_ CONVOY_GUARDED_BY(mutex_) = 0;
};

/// Returns the process's arena, made at the first call with the size of the machine's memory. A child made by fork()
/// shares its parent's arena and must not use it; after exec() it has its own.
/// Ownership:  never destroyed: tensors in static objects may outlive everything else
SharedArena& process_arena();

}  // namespace convoy::comm

// ScratchPool: memory for what passes through, kept between operations.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/observe/memory_meter.h"

namespace convoy::comm {

/// Gives memory back to where it came from.
struct FreeScratch {
  /// The arena; null for the heap.
  SharedArena* arena = nullptr;
  void operator()(std::byte* memory) const;
};

/// Memory for what has to be copied, kept between operations.
/// Threads:    one caller at a time
class ScratchPool {
 public:
  /// A block of memory.
  struct Block {
    std::unique_ptr<std::byte[], FreeScratch> memory;
    /// Its size.
    std::size_t bytes = 0;
    /// Counts it as MemoryCategory::kCommunicationBuffers.
    observe::CountedMemory counted{};
  };
  /// Takes memory from an arena, which it borrows, while that has any; from the heap without one.
  explicit ScratchPool(SharedArena* arena = nullptr) : arena_(arena) {}
  /// Returns a block of at least this size.
  Block take(std::size_t bytes);
  /// Keeps a block for later; of too many, the smallest ones go. An empty one is ignored.
  void give(Block block);
  /// Returns a block that comes back by itself when nobody holds it any more.
  std::shared_ptr<std::byte> share(std::size_t bytes);

 private:
  SharedArena* arena_;
  std::vector<Block> blocks_;
};

}  // namespace convoy::comm

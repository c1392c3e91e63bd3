// Keeps the largest blocks.
#include "convoy/comm/engine/scratch_pool.h"

#include <algorithm>
#include <utility>

namespace convoy::comm {
namespace {

constexpr std::size_t kPooledBlocks = 16;

}  // namespace

void FreeScratch::operator()(std::byte* memory) const {
  if (arena != nullptr) {
    arena->deallocate(memory);
  } else {
    delete[] memory;
  }
}

ScratchPool::Block ScratchPool::take(std::size_t bytes) {
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (block->bytes >= bytes && (best == blocks_.end() || block->bytes < best->bytes)) best = block;
  }
  if (best != blocks_.end()) {
    Block block = std::move(*best);
    blocks_.erase(best);
    return block;
  }
  Block block;
  block.bytes = bytes;
  using Memory = std::unique_ptr<std::byte[], FreeScratch>;
  if (arena_ != nullptr) block.memory = Memory(static_cast<std::byte*>(arena_->allocate(bytes)), FreeScratch{arena_});
  if (block.memory == nullptr) block.memory = Memory(new std::byte[bytes], FreeScratch{});
  block.counted = {observe::MemoryCategory::kCommunicationBuffers, static_cast<std::int64_t>(bytes)};
  return block;
}

std::shared_ptr<std::byte> ScratchPool::share(std::size_t bytes) {
  auto block = std::make_shared<Block>(take(bytes));
  std::byte* const memory = block->memory.get();
  return {memory, [this, block = std::move(block)](std::byte*) { give(std::move(*block)); }};
}

void ScratchPool::give(Block block) {
  if (block.memory == nullptr) return;
  blocks_.push_back(std::move(block));
  if (blocks_.size() <= kPooledBlocks) return;
  blocks_.erase(std::min_element(blocks_.begin(), blocks_.end(),
                                 [](const Block& a, const Block& b) { return a.bytes < b.bytes; }));
}

}  // namespace convoy::comm

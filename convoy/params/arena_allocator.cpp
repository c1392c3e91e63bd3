#include "convoy/params/arena_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <cstdlib>

#include "convoy/comm/shared_memory/shared_arena.h"

namespace convoy::params {
namespace {

// Each block is preceded by a line that remembers its size, what it is used for and where it came from.
struct BlockHead {
  std::size_t bytes;
  observe::MemoryCategory category;
  bool in_arena;
};
constexpr std::size_t kHeadBytes = 64;

void release(void* data) {
  if (data == nullptr) return;
  auto* block = static_cast<std::byte*>(data) - kHeadBytes;
  const BlockHead head = *reinterpret_cast<BlockHead*>(block);
  observe::process_memory().remove(head.category, static_cast<std::int64_t>(head.bytes));
  if (head.in_arena) {
    comm::process_arena().deallocate(block);
  } else {
    std::free(block);
  }
}

class ArenaAllocator final : public c10::Allocator {
 public:
  explicit ArenaAllocator(std::size_t smallest) : smallest_(smallest) {}

  c10::DataPtr allocate(std::size_t bytes) const override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    const std::size_t whole = (bytes + kHeadBytes + 63) / 64 * 64;
    bool in_arena = bytes >= smallest_;
    void* block = in_arena ? comm::process_arena().allocate(whole) : nullptr;
    if (block == nullptr) {
      in_arena = false;
      block = std::aligned_alloc(64, whole);
      TORCH_CHECK(block != nullptr, "out of memory: a tensor of ", bytes, " bytes");
    }
    const observe::MemoryCategory category = observe::MemoryScope::current();
    new (block) BlockHead{bytes, category, in_arena};
    observe::process_memory().add(category, static_cast<std::int64_t>(bytes));
    void* data = static_cast<std::byte*>(block) + kHeadBytes;
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  const std::size_t smallest_;
};

}  // namespace

void use_shared_arena(std::size_t smallest) {
  // libtorch keeps the pointer for as long as the process lives, so the allocator is never destroyed.
  static ArenaAllocator* allocator = [smallest] {
    auto* made = new ArenaAllocator(smallest);
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  (void)allocator;
}

bool retag(const torch::Tensor& tensor, observe::MemoryCategory category) {
  const c10::DataPtr& memory = tensor.storage().data_ptr();
  if (memory.get() == nullptr || memory.get_deleter() != &release) return false;
  auto& head = *reinterpret_cast<BlockHead*>(static_cast<std::byte*>(memory.get()) - kHeadBytes);
  if (head.category == category) return true;
  observe::process_memory().move(head.category, category, static_cast<std::int64_t>(head.bytes));
  head.category = category;
  return true;
}

}  // namespace convoy::params

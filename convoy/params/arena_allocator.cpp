#include "convoy/params/arena_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include <atomic>
#include <cstdlib>

#include "convoy/comm/shared_memory/shared_arena.h"

namespace convoy::params {
namespace {

std::atomic<std::int64_t> now_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

// Each block is preceded by a line that remembers its size and where it came from.
struct BlockHead {
  std::size_t bytes;
  bool in_arena;
};
constexpr std::size_t kHeadBytes = 64;

void count(std::int64_t change) {
  const std::int64_t now = now_bytes.fetch_add(change, std::memory_order_relaxed) + change;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void release(void* data) {
  if (data == nullptr) return;
  auto* block = static_cast<std::byte*>(data) - kHeadBytes;
  const BlockHead head = *reinterpret_cast<BlockHead*>(block);
  count(-static_cast<std::int64_t>(head.bytes));
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
    new (block) BlockHead{bytes, in_arena};
    count(static_cast<std::int64_t>(bytes));
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

TensorMemory tensor_memory() { return {now_bytes.load(), peak_bytes.load()}; }

void reset_tensor_memory_peak() { peak_bytes = now_bytes.load(); }

}  // namespace convoy::params

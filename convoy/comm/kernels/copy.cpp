// Copies past the caches: the kernel of four-byte elements moves the whole lines, whatever they hold.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "convoy/comm/kernels/steps.h"

namespace convoy::comm::kernels {

void copy_past_caches(std::byte* target, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  if (target < source + bytes && source < target + bytes) {
    std::memmove(target, source, bytes);
    return;
  }
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine);
  const std::size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(target, source, head);
  if (lines > 0) {
    const Step whole{Take::kOne, Put::kPush, {source + head, nullptr, nullptr, nullptr}};
    const auto count = static_cast<std::int64_t>(lines / sizeof(std::int32_t));
    reduce_int32(Reduction{ReduceOp::kSum, {&whole, 1}, target + head, count, 1, true});
  }
  std::memcpy(target + head + lines, source + head + lines, bytes - head - lines);
}

std::int64_t largest_cache_bytes() {
  constexpr std::int64_t kUsual = std::int64_t{32} << 20;
  std::int64_t largest = -1;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  largest = std::max<std::int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
  return largest > 0 ? largest : kUsual;
}

}  // namespace convoy::comm::kernels

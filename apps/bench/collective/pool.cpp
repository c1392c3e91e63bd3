// Memory for buffers, shared or not, warm or cold.
#include "apps/bench/collective/pool.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "apps/bench/request/request.h"
#include "convoy/base/error.h"

namespace convoy::bench {
namespace {

constexpr std::int64_t kPage = 4096;
// Where the system does not say how large its cache is.
constexpr std::int64_t kSomeCache = std::int64_t{32} << 20;
constexpr std::int64_t kMostCache = std::int64_t{512} << 20;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// What all ranks together must touch between two uses of a buffer.
std::int64_t cache_bytes() {
  const std::int64_t told = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::min(kMostCache, told > 0 ? told : kSomeCache);
}

std::byte* private_memory(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kOutOfMemory, fmt::format("there is no memory for buffers of {} bytes", bytes));
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

Pool::Pool(Team& team, const PoolOptions& options) : options_(options) {
  const std::int64_t one = 2 * rounded(std::max<std::int64_t>(1, options.largest_bytes));
  std::int64_t bytes = one;
  if (options.cold) bytes = std::max(2 * one, one + 2 * cache_bytes() / team.size());
  bytes_ = static_cast<std::size_t>(rounded(std::max(bytes, 2 * kMostBatchBytes)));
  if (options.shared) {
    starts_ = team.share(bytes_);
    own_ = starts_[static_cast<std::size_t>(team.rank())];
  } else {
    own_ = private_memory(bytes_);
    mapped_ = true;
  }
  std::memset(own_, 0, bytes_);
}

Pool::~Pool() {
  if (mapped_) ::munmap(own_, bytes_);
}

std::int64_t Pool::begin(std::int64_t input_bytes, std::int64_t output_bytes, int batch) {
  output_offset_ = rounded(input_bytes);
  stride_ = std::max(kPage, output_offset_ + rounded(output_bytes));
  const std::int64_t room = static_cast<std::int64_t>(bytes_) / stride_;
  CONVOY_CHECK(batch <= room, "a batch of buffers fits into the pool");
  slots_ = options_.cold ? room : batch;
  return slots_;
}

Slot Pool::slot(std::int64_t number) const {
  const std::int64_t offset = number % slots_ * stride_;
  Slot slot;
  slot.input = own_ + offset;
  slot.output = own_ + offset + output_offset_;
  for (std::byte* const start : starts_) slot.all_inputs.push_back(start + offset);
  return slot;
}

}  // namespace convoy::bench

// Windows in the control segment: a rank's cell lists stretches of its arena, a lane says whether a store is under way.
#include "convoy/comm/shared_memory/shared_window.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/log.h"

namespace convoy::comm {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr Duration kLook = std::chrono::microseconds(200);

}  // namespace

void SharedWindow::open(std::uint64_t sequence, std::span<const Extent> output, std::size_t element_bytes) {
  WindowCell& cell = view_.window(rank_);
  cell.count = 0;
  std::uint64_t before = 0;
  for (const Extent& extent : output) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(extent.elements) * element_bytes;
    const std::uint64_t first = before;
    before += bytes;
    if (cell.count == WindowCell::kMost || !arena_.contains(extent.data, bytes)) continue;
    // Whole elements in whole pages.
    const std::uint64_t begin = arena_.offset_of(extent.data);
    const std::uint64_t head = (kPage - begin % kPage) % kPage;
    const std::uint64_t skip = (head + element_bytes - 1) / element_bytes * element_bytes;
    const std::uint64_t end = (begin + bytes) / kPage * kPage;
    if (begin + skip + element_bytes > end) continue;
    const std::uint64_t length = (end - begin - skip) / element_bytes * element_bytes;
    cell.stretches[cell.count++] = WindowStretch{first + skip, begin + skip, length};
  }
  if (cell.count > 0) cell.sequence.store(sequence);
}

std::vector<WindowPart> SharedWindow::parts(int peer, std::uint64_t sequence, std::size_t element_bytes) {
  const WindowCell& cell = view_.window(peer);
  const FileMapping& arena = arenas_[static_cast<std::size_t>(peer)];
  std::vector<WindowPart> parts;
  if (cell.sequence.load() != sequence) return parts;
  const std::uint64_t count = std::min<std::uint64_t>(cell.count, WindowCell::kMost);
  for (std::uint64_t i = 0; i < count; ++i) {
    const WindowStretch stretch = cell.stretches[i];
    if (stretch.bytes > arena.size() || stretch.arena > arena.size() - stretch.bytes) {
      throw Error(ErrorCode::kInternal, fmt::format("rank {} shows an output that lies nowhere", peer));
    }
    parts.push_back(WindowPart{static_cast<std::int64_t>(stretch.output / element_bytes),
                               static_cast<std::int64_t>(stretch.bytes / element_bytes), arena.data() + stretch.arena});
  }
  return parts;
}

// The announcement and the window are stored and loaded in one total order: either the store is announced before the
// window is closed, and then waited for, or it finds the window closed.
bool SharedWindow::begin_store(int peer, std::uint64_t sequence) {
  std::atomic<std::uint32_t>& storing = view_.ends(rank_, peer).storing;
  storing.store(1);
  if (view_.window(peer).sequence.load() == sequence) return true;
  storing.store(0, std::memory_order_release);
  return false;
}

bool SharedWindow::is_written(const std::function<bool(int)>& ended) const {
  for (int peer = 0; peer < view_.shape().ranks; ++peer) {
    if (peer == rank_ || view_.ends(peer, rank_).storing.load() == 0) continue;
    if (!ended(peer)) return true;
  }
  return false;
}

void SharedWindow::take_back(Duration limit, const std::function<bool(int)>& ended) {
  WindowCell& cell = view_.window(rank_);
  if (cell.sequence.exchange(0) == 0) return;
  const Deadline deadline(system_clock(), limit);
  while (is_written(ended)) {
    if (!deadline.expired()) {
      system_clock().sleep_for(kLook);
      continue;
    }
    log_warning(
        "a stopped rank may still write into {} stretches of this rank's output: their pages are taken out of "
        "its reach",
        cell.count);
    for (std::uint64_t i = 0; i < cell.count; ++i) {
      const std::uint64_t begin = cell.stretches[i].arena / kPage * kPage;
      const std::uint64_t end = (cell.stretches[i].arena + cell.stretches[i].bytes + kPage - 1) / kPage * kPage;
      arena_.detach(arena_.base() + begin, end - begin);
    }
    return;
  }
}

}  // namespace convoy::comm

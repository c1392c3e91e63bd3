// The worlds that every collective is tried in: each transport with each number of ranks, as one parameter.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/in_process_transport.h"
#include "convoy/comm/shared_memory_transport.h"
#include "tests/support/ranks.h"

namespace convoy::comm {

/// A transport and how its users get memory.
struct TransportKind {
  std::string name;
  bool shared_memory = false;
  bool arena_buffers = false;
  InProcessOptions in_process;
};

inline const std::vector<TransportKind>& transport_kinds() {
  static const std::vector<TransportKind> kinds{
      {"InProcess", false, false, {}},
      {"InProcessTinyCopies", false, false, {3, 1000}},
      {"InProcessShortQueue", false, false, {2, 0}},
      {"SharedMemory", true, true, {}},
      {"SharedMemoryPrivateBuffers", true, false, {}},
  };
  return kinds;
}

/// One rank's surroundings in a test: its group, and memory of the kind that the world asks for.
class RankWorld {
 public:
  RankWorld(std::unique_ptr<Group> group, SharedArena* arena) : group_(std::move(group)), arena_(arena) {}
  Group& group() { return *group_; }
  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  /// Returns memory for `bytes` bytes at an address that is `skew` beyond an aligned one.
  std::byte* memory(std::size_t bytes, std::size_t skew = 0) {
    if (arena_ != nullptr) {
      void* const block = arena_->allocate(bytes + skew);
      CONVOY_CHECK(block != nullptr, "the test's arena is large enough");
      return static_cast<std::byte*>(block) + skew;
    }
    owned_.push_back(std::make_unique<std::byte[]>(bytes + skew + 64));
    return owned_.back().get() + skew;
  }
  /// Ends this rank's part in the group.
  void leave() { group_.reset(); }

 private:
  // The memory outlives the group.
  std::vector<std::unique_ptr<std::byte[]>> owned_;
  std::unique_ptr<Group> group_;
  SharedArena* arena_;
};

/// Runs `body` on every rank of a new world; returns what each threw.
inline std::vector<std::exception_ptr> collect_world(const TransportKind& kind, int ranks, const GroupOptions& options,
                                                     const std::function<void(RankWorld&)>& body) {
  std::vector<std::unique_ptr<Transport>> transports;
  MemoryStore store;
  // One arena for each rank, as processes have them.
  std::vector<std::unique_ptr<SharedArena>> arenas(static_cast<std::size_t>(ranks));
  if (!kind.shared_memory) transports = make_in_process_transports(ranks, kind.in_process);
  return testing::collect_ranks(ranks, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    std::unique_ptr<Transport> transport;
    if (kind.shared_memory) {
      arenas[r] = std::make_unique<SharedArena>(std::size_t{64} << 20);
      SharedMemoryOptions shared;
      shared.group = options.name;
      shared.generation = options.generation;
      shared.limit = std::chrono::seconds(20);
      shared.arena = arenas[r].get();
      // Small, so that what is large in a test goes through many chunks.
      shared.slots = 16;
      shared.staging_chunks = 2;
      shared.chunk_bytes = 4100;
      transport = make_shared_memory_transport(store, rank, ranks, shared);
    } else {
      transport = std::move(transports[r]);
    }
    RankWorld world(make_group(std::move(transport), options), kind.arena_buffers ? arenas[r].get() : nullptr);
    body(world);
  });
}

/// Runs `body` on every rank of a new world and throws what the lowest failing rank threw.
inline void run_world(const TransportKind& kind, int ranks, const GroupOptions& options,
                      const std::function<void(RankWorld&)>& body) {
  for (const std::exception_ptr& thrown : collect_world(kind, ranks, options, body)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

/// Memory of `elements` elements, whole or cut into pieces that lie apart, each rank in its own way.
class TestArray {
 public:
  TestArray(RankWorld& world, DType dtype, std::int64_t elements, int cuts, std::size_t skew = 0)
      : bytes_(element_bytes(dtype)) {
    std::int64_t done = 0;
    for (int cut = 0; cut <= cuts && done < elements; ++cut) {
      const std::int64_t part = (elements - done) / (cuts - cut + 1) / (2 + world.rank() % 3) + 1;
      const std::int64_t count = cut == cuts ? elements - done : std::min(part, elements - done);
      extents_.push_back({world.memory(static_cast<std::size_t>(count) * bytes_, skew), count});
      done += count;
    }
  }
  Buffer buffer() const { return Buffer(extents_); }
  void fill(const std::vector<std::byte>& flat) {
    const std::byte* at = flat.data();
    for (const Extent& extent : extents_) {
      std::copy_n(at, static_cast<std::size_t>(extent.elements) * bytes_, extent.data);
      at += static_cast<std::size_t>(extent.elements) * bytes_;
    }
  }
  std::vector<std::byte> flat() const {
    std::vector<std::byte> all;
    for (const Extent& extent : extents_) {
      all.insert(all.end(), extent.data, extent.data + static_cast<std::size_t>(extent.elements) * bytes_);
    }
    return all;
  }

 private:
  std::size_t bytes_;
  std::vector<Extent> extents_;
};

}  // namespace convoy::comm

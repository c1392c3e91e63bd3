// The worlds that every collective is tried in: each transport with each number of ranks, as one parameter.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/comm/gloo/gloo_transport.h"
#include "convoy/comm/group.h"
#include "convoy/comm/in_process_transport.h"
#include "convoy/comm/shared_memory/shared_memory_transport.h"
#include "tests/support/ranks.h"

namespace convoy::comm {

/// A transport and how its users get memory.
struct TransportKind {
  enum class Medium { kInProcess, kSharedMemory, kGloo };

  std::string name;
  Medium medium = Medium::kInProcess;
  bool arena_buffers = false;
  InProcessOptions in_process;
  /// Of Gloo: addresses of this host, one connection each.
  std::vector<std::string> interfaces;
  /// Of shared memory: buffers outside the arena from this size on are read through the kernel.
  std::size_t remote_bytes = SIZE_MAX;
};

inline const std::vector<TransportKind>& transport_kinds() {
  static const std::vector<TransportKind> kinds{
      {"InProcess", TransportKind::Medium::kInProcess, false, {}, {}},
      {"InProcessTinyCopies", TransportKind::Medium::kInProcess, false, {3, 1000}, {}},
      {"InProcessShortQueue", TransportKind::Medium::kInProcess, false, {2, 0}, {}},
      {"SharedMemory", TransportKind::Medium::kSharedMemory, true, {}, {}},
      {"SharedMemoryPrivateBuffers", TransportKind::Medium::kSharedMemory, false, {}, {}},
      {"SharedMemoryRemoteReads", TransportKind::Medium::kSharedMemory, false, {}, {}, 100},
      {"Gloo", TransportKind::Medium::kGloo, false, {}, {"127.0.0.1"}},
      {"GlooTwoInterfaces", TransportKind::Medium::kGloo, false, {}, {"127.0.0.1", "127.0.0.2"}},
  };
  return kinds;
}

/// Returns the kind that a test's parameter says.
inline const TransportKind& transport_kind(int parameter) {
  return transport_kinds()[static_cast<std::size_t>(parameter)];
}

/// Returns the parameters of all kinds.
inline auto all_transport_kinds() { return ::testing::Range(0, static_cast<int>(transport_kinds().size())); }

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

/// Returns the options of a small transport over sockets.
inline GlooOptions gloo_options(const TransportKind& kind, const GroupOptions& options) {
  GlooOptions gloo;
  gloo.group = options.name;
  gloo.generation = options.generation;
  gloo.limit = std::chrono::seconds(20);
  gloo.interfaces = kind.interfaces;
  gloo.chunks = 2;
  gloo.chunk_bytes = 4100;
  return gloo;
}

/// Runs `body` on every rank of a new world; returns what each threw.
inline std::vector<std::exception_ptr> collect_world(const TransportKind& kind, int ranks, const GroupOptions& options,
                                                     const std::function<void(RankWorld&)>& body) {
  std::vector<std::unique_ptr<Transport>> transports;
  MemoryStore store;
  // One arena for each rank, as processes have them.
  std::vector<std::unique_ptr<SharedArena>> arenas(static_cast<std::size_t>(ranks));
  if (kind.medium == TransportKind::Medium::kInProcess) {
    transports = make_in_process_transports(ranks, kind.in_process);
  }
  return testing::collect_ranks(ranks, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    std::unique_ptr<Transport> transport;
    if (kind.medium == TransportKind::Medium::kGloo) {
      transport = make_gloo_transport(store, rank, ranks, gloo_options(kind, options));
    } else if (kind.medium == TransportKind::Medium::kSharedMemory) {
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
      shared.remote_bytes = kind.remote_bytes;
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

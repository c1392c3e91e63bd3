// What an executor is given: its group's ways, one operation, and memory that is kept between operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "convoy/comm/engine/scratch_pool.h"
#include "convoy/comm/group.h"
#include "convoy/observe/flight_recorder.h"
#include "convoy/spec/schedule/storing.h"

namespace convoy::comm {

/// Fewer bytes of private memory go through the transport's staging chunks; more are copied into the arena for peers.
inline constexpr std::size_t kFewBytes = 4096;

/// What an executor needs to know of its group.
struct ExecutorOptions {
  std::string group = "world";
  /// Messages of others are dropped.
  std::uint64_t generation = 1;
  /// The longest wait of an operation.
  Duration timeout = std::chrono::seconds(60);
  /// A peer without a sign of life for this long is called silent.
  Duration silent_after = std::chrono::milliseconds(1500);
  /// Reductions work through this many bytes at a time.
  std::int64_t chunk_bytes = 1 << 18;
  /// Operations whose results have more bytes, all ranks' together, are stored past the caches.
  std::int64_t cache_bytes = 0;
  /// Learns when all ranks have entered; may be null.
  observe::FlightRecorder* recorder = nullptr;
};

/// One operation of one rank.
struct ExecutorTask {
  /// What it does, and on which memory.
  Collective collective;
  /// What the ranks must agree on.
  observe::BoardOperation operation;
  /// Which results are stored where peers want them; null where there are none.
  std::shared_ptr<const spec::DirectStores> stores;
};

/// Memory that executors keep between operations.
struct ExecutorPools {
  /// For what has to be copied out.
  ScratchPool scratch;
  /// For what peers shall read in place of private memory: in the arena.
  ScratchPool shared;
};

}  // namespace convoy::comm

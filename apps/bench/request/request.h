// What the worker was asked to measure, as the command hands it over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/base/dtype.h"
#include "convoy/law/price.h"

namespace convoy::bench {

/// A benchmark.
struct Request {
  /// "p2p" or "collective".
  std::string kind;
  /// How ranks reach each other: "shared_memory", "gloo", "in_process", or "openmpi" for its own collectives alone.
  std::string transport = "shared_memory";
  /// How many ranks, where they are threads of one process; else the launcher says it.
  int ranks = 1;
  /// The element type.
  DType dtype = DType::kFloat32;
  /// The collective.
  std::string op;
  /// Algorithms by name.
  std::vector<std::string> algorithms;
  /// Bytes of the operation.
  std::vector<std::int64_t> sizes;
  /// Whether buffers lie where peers reach them; else in ordinary memory.
  bool shared_buffers = true;
  /// Whether buffers rotate through more memory than the cache holds.
  bool cold = false;
  /// Measurements of each; 0 means as many as fit the size.
  int repeats = 0;
  /// Other libraries to measure beside: "openmpi", "gloo".
  std::vector<std::string> peers;
  /// The host of each rank as schedules shall see it; empty means one.
  std::vector<int> hosts;
  /// The most bytes of a message of pipelined algorithms; 0 means that nothing is cut.
  std::int64_t chunk_bytes = 0;
  /// What messages cost, for the group's own choice; nothing where that is not known.
  std::optional<law::Machine> machine;
  /// The longest wait for other ranks.
  Duration timeout = std::chrono::seconds(60);
  /// The longest time for everything.
  Duration limit = std::chrono::seconds(600);

  /// Returns whether a peer is asked for.
  bool wants(const std::string& peer) const;
};

/// Reads what the command wrote.
/// Errors:     kInvalidArgument for text of another form
Request read_request(const std::string& json);

/// The most bytes of a batch's inputs: small enough for the caches nearest to a processor.
inline constexpr std::int64_t kMostBatchBytes = std::int64_t{1} << 20;

/// Returns how many operations of a size are done one right after the other in one measurement: as many as have a
/// duration that a clock can tell, with all that is asked about at hand.
int batch_of(std::int64_t bytes);

/// Returns the measurements of each contender at a size.
int repeats_of(const Request& request, std::int64_t bytes);

}  // namespace convoy::bench

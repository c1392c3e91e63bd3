// What a request for `convoy bench` comes to, with everything chosen: sizes, algorithms, hosts, peers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/requests.h"
#include "convoy/base/dtype.h"

namespace convoy::cli {

/// A benchmark with nothing left open.
struct BenchPlan {
  /// How ranks reach each other.
  std::string transport;
  /// The element type.
  DType dtype = DType::kFloat32;
  /// Bytes, ascending.
  std::vector<std::int64_t> sizes;
  /// Algorithms by name.
  std::vector<std::string> algorithms;
  /// The host of each rank; empty means one.
  std::vector<int> hosts;
  /// The most bytes of a message of pipelined algorithms; 0 for no limit.
  std::int64_t chunk_bytes = 0;
};

/// Returns a size in bytes: "4", "64KiB", "64k", "1.5M".
/// Errors:     kInvalidArgument naming the text
std::int64_t parse_bytes(const std::string& text);

/// Chooses everything; reads the recipe.
/// Errors:     kInvalidArgument naming what is unknown (and what was probably meant) or does not fit
BenchPlan make_bench_plan(const BenchRequest& request);

}  // namespace convoy::cli

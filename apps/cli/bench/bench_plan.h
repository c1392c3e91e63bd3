// What a request for `convoy bench` comes to, with everything chosen: sizes, algorithms, hosts, peers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/requests.h"
#include "convoy/base/dtype.h"
#include "convoy/law/price.h"
#include "convoy/spec/recipe.h"

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
  /// What the recipe says of links, over the transport.
  spec::CommRecipe comm;
};

/// Returns a size in bytes: "4", "64KiB", "64k", "1.5M".
/// Errors:     kInvalidArgument naming the text
std::int64_t parse_bytes(const std::string& text);

/// Returns the machine by which a group chooses algorithms: the calibration of --save or of this machine, with the links
/// that the recipe writes; nothing when a link is neither measured nor written, or with --no-save.
std::optional<law::Machine> machine_of(const BenchRequest& request, const BenchPlan& plan);

/// Chooses everything; reads the recipe.
/// Errors:     kInvalidArgument naming what is unknown (and what was probably meant) or does not fit
BenchPlan make_bench_plan(const BenchRequest& request);

}  // namespace convoy::cli

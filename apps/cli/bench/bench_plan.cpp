// From words to numbers.
#include "apps/cli/bench/bench_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <string_view>

#include "apps/cli/bench/model_sizes.h"
#include "apps/cli/byte_size.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/text.h"
#include "convoy/comm/native_collectives.h"
#include "convoy/plan/calibration.h"
#include "convoy/plan/collective_size.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/topology.h"

namespace convoy::cli {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 30;
constexpr std::int64_t kStep = 4;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, "bench: " + why); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

std::vector<std::int64_t> growing(std::int64_t from, std::int64_t to) {
  if (from > to) refuse(fmt::format("--min {} is above --max {}", from, to));
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = std::max<std::int64_t>(1, from); bytes <= to; bytes *= kStep) sizes.push_back(bytes);
  if (sizes.empty() || sizes.back() != to) sizes.push_back(to);
  return sizes;
}

std::vector<std::int64_t> sizes_of(const BenchRequest& request) {
  if (!request.sizes.empty()) {
    std::set<std::int64_t> sizes;
    for (const std::string& text : split(request.sizes)) sizes.insert(parse_bytes(text));
    if (sizes.empty()) refuse("--sizes names no size");
    return {sizes.begin(), sizes.end()};
  }
  if (request.explain) return {std::int64_t{1} << 20};
  if (request.op == "barrier" && request.action == "collective") return {0};
  const std::int64_t most = std::int64_t{request.action == "p2p" ? 64 : 256} << 20;
  return growing(request.min.empty() ? 4 : parse_bytes(request.min),
                 request.max.empty() ? most : parse_bytes(request.max));
}

DType dtype_of(const std::string& name) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8,
                           DType::kBFloat16, DType::kFloat16}) {
    if (to_string(type) == name) return type;
  }
  refuse(fmt::format("unknown element type '{}'", name));
}

std::vector<int> hosts_of(const BenchRequest& request) {
  std::vector<int> hosts;
  for (const std::string& word : split(request.hosts)) {
    int host = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), host);
    if (error != std::errc() || end != word.data() + word.size() || host < 0) {
      refuse(fmt::format("--hosts: '{}' is no number of a host", word));
    }
    hosts.push_back(host);
  }
  if (!hosts.empty() && hosts.size() != static_cast<std::size_t>(request.ranks)) {
    refuse(fmt::format("--hosts names the hosts of {} ranks, there are {}", hosts.size(), request.ranks));
  }
  return hosts;
}

// All that fit: those that go over hosts only where there are several.
std::vector<std::string> all_algorithms(const BenchRequest& request, const BenchPlan& plan) {
  const bool one_host = std::set<int>(plan.hosts.begin(), plan.hosts.end()).size() < 2;
  const auto shape = plan::collective_size(request.op, request.ranks, plan.sizes.back(), plan.dtype)
                         .shape(plan.hosts, plan.chunk_bytes);
  std::vector<std::string> names;
  for (const spec::Algorithm& algorithm : spec::algorithms()) {
    if (algorithm.collective != request.op || !spec::fits(algorithm, shape)) continue;
    if (one_host && algorithm.name.find("hierarchical") != std::string_view::npos) continue;
    names.emplace_back(algorithm.name);
  }
  return names;
}

bool group_has(const std::string& op) {
  constexpr std::array<std::string_view, 5> kOwn = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                    "barrier"};
  return std::find(kOwn.begin(), kOwn.end(), op) != kOwn.end();
}

std::vector<std::string> algorithms_of(const BenchRequest& request, const BenchPlan& plan) {
  const std::vector<std::string> known = spec::collectives();
  if (std::find(known.begin(), known.end(), request.op) == known.end()) {
    refuse(fmt::format("unknown operation '{}'{}: there are {}", request.op, did_you_mean(request.op, known),
                       fmt::join(known, ", ")));
  }
  const bool mpi = plan.transport == "openmpi";
  if (request.algorithms.empty()) {
    if (mpi)
      return {group_has(request.op) ? "default" : all_algorithms(request, plan).front(), std::string(comm::kNative)};
    if (group_has(request.op)) return {"default"};
    return {all_algorithms(request, plan).front()};
  }
  std::vector<std::string> names;
  for (const std::string& name : request.algorithms) {
    if (name == "all") {
      const std::vector<std::string> all = all_algorithms(request, plan);
      names.insert(names.end(), all.begin(), all.end());
      if (mpi) names.emplace_back(comm::kNative);
      continue;
    }
    if (name == comm::kNative) {
      if (!mpi) refuse("algorithm native needs --transport openmpi");
    } else if (name != "default" || !group_has(request.op)) {
      (void)spec::find_algorithm(request.op, name);
    }
    names.push_back(name);
  }
  return names;
}

std::string transport_of(const BenchRequest& request, const std::string& usual) {
  const std::string chosen = request.transport.empty() ? usual : request.transport;
  const std::vector<std::string> known = {"shared_memory", "gloo", "in_process", "openmpi"};
  if (std::find(known.begin(), known.end(), chosen) == known.end()) {
    refuse(fmt::format("unknown transport '{}'{}: there are {}", chosen, did_you_mean(chosen, known),
                       fmt::join(known, ", ")));
  }
  if (chosen == "in_process" && request.with_peers) refuse("--peers needs ranks that are processes");
  return chosen;
}

}  // namespace

std::int64_t parse_bytes(const std::string& text) {
  const std::optional<double> bytes = read_byte_size(text);
  if (!bytes) refuse(fmt::format("'{}' is no size: write bytes, or 64KiB, 1MiB", text));
  if (!(*bytes >= 1 && *bytes <= static_cast<double>(kLargest)) || *bytes != std::floor(*bytes)) {
    refuse(fmt::format("'{}' is no size from 1 byte to 1 GiB", text));
  }
  return static_cast<std::int64_t>(*bytes);
}

std::optional<law::Machine> machine_of(const BenchRequest& request, const BenchPlan& plan) {
  std::optional<plan::Calibration> calibration;
  if (!request.save.empty()) {
    calibration = plan::read_calibration(local_files(), request.save);
  } else if (!request.no_save) {
    calibration = plan::read_own_calibration(local_files(), plan::calibration_path());
  }
  auto machine = plan::machine_of(calibration, plan.comm, request.ranks);
  if (machine) machine->host_of_rank = plan.hosts;
  return machine;
}

namespace {

// What the model's gradients are exchanged in; one size where one is shown.
std::vector<std::int64_t> sizes_of_recipe(const BenchRequest& request, const spec::Recipe& recipe) {
  const std::int64_t bucket = std::min(recipe.parallel.known_bucket_bytes(), kLargest);
  if (request.explain) return {bucket};
  std::vector<std::int64_t> sizes;
  for (const std::int64_t bytes : model_sizes(recipe)) {
    if (bytes > 0 && bytes <= kLargest) sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace

BenchPlan make_bench_plan(const BenchRequest& request) {
  BenchPlan plan;
  std::string usual = "shared_memory";
  plan.dtype = dtype_of(request.dtype);
  plan.hosts = hosts_of(request);
  if (!request.chunk.empty()) plan.chunk_bytes = parse_bytes(request.chunk);
  if (request.recipe.empty()) {
    plan.sizes = sizes_of(request);
  } else {
    if (!local_files().exists(request.recipe)) refuse(fmt::format("there is no recipe {}", request.recipe));
    const spec::Recipe recipe = spec::read_recipe(request.recipe, request.overrides);
    usual = recipe.comm.transport;
    plan.comm = recipe.comm;
    if (plan.hosts.empty()) plan.hosts = spec::hosts_of_recipe(recipe.comm.hosts, request.ranks);
    plan.sizes = sizes_of_recipe(request, recipe);
  }
  plan.transport = transport_of(request, usual);
  plan.comm.transport = plan.transport;
  if (request.action == "collective") plan.algorithms = algorithms_of(request, plan);
  if (request.explain && plan.algorithms.size() != 1) refuse("--explain shows one schedule, not all");
  const bool shown =
      plan.algorithms.empty() || (plan.algorithms.front() != "default" && plan.algorithms.front() != comm::kNative);
  if (request.explain && !shown) refuse("--explain needs an algorithm of the registry");
  if (request.explain && plan.sizes.size() != 1) refuse("--explain shows one size: --bytes B");
  return plan;
}

}  // namespace convoy::cli

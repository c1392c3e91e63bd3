// Reads the command's JSON.
#include "apps/bench/request/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"

namespace convoy::bench {
namespace {

DType dtype_of(const std::string& name) {
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8,
                           DType::kBFloat16, DType::kFloat16}) {
    if (to_string(type) == name) return type;
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("there is no element type '{}' to measure with", name));
}

Duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::optional<law::Machine> machine_of(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  law::Machine machine;
  machine.inside = {json.at("inside").at(0), json.at("inside").at(1)};
  machine.between = {json.at("between").at(0), json.at("between").at(1)};
  machine.gamma_s = json.at("gamma_s");
  machine.kappa_s = json.at("kappa_s");
  return machine;
}

}  // namespace

bool Request::wants(const std::string& peer) const {
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

Request read_request(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Request request;
    request.kind = json.at("kind");
    request.transport = json.at("transport");
    request.ranks = json.at("ranks");
    request.dtype = dtype_of(json.at("dtype"));
    request.op = json.at("op");
    request.algorithms = json.at("algorithms").get<std::vector<std::string>>();
    request.sizes = json.at("sizes").get<std::vector<std::int64_t>>();
    request.shared_buffers = json.at("buffers") == "shared";
    request.cold = json.at("cold");
    request.repeats = json.at("repeats");
    request.peers = json.at("peers").get<std::vector<std::string>>();
    request.hosts = json.at("hosts").get<std::vector<int>>();
    request.chunk_bytes = json.at("chunk_bytes");
    request.machine = machine_of(json.at("machine"));
    request.timeout = seconds_of(json.at("timeout_s"));
    request.limit = seconds_of(json.at("limit_s"));
    return request;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("--request is no benchmark: {}", error.what()));
  }
}

int batch_of(std::int64_t bytes) {
  constexpr std::int64_t kMost = 16;
  return static_cast<int>(std::clamp<std::int64_t>(kMostBatchBytes / std::max<std::int64_t>(1, bytes), 1, kMost));
}

int repeats_of(const Request& request, std::int64_t bytes) {
  if (request.repeats > 0) return request.repeats;
  if (bytes <= 64 << 10) return 200;
  if (bytes <= 1 << 20) return 60;
  return bytes <= 16 << 20 ? 25 : 11;
}

}  // namespace convoy::bench

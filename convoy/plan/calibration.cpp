// The calibration as a file, and as the machine of prices.
#include "convoy/plan/calibration.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "convoy calibration";
constexpr int kVersion = 1;

bool same(const LinkCalibration& a, const LinkCalibration& b) {
  return a.transport == b.transport && a.buffers == b.buffers && a.ranks == b.ranks;
}

bool same(const CollectiveCalibration& a, const CollectiveCalibration& b) {
  return a.op == b.op && a.algorithm == b.algorithm && a.transport == b.transport && a.buffers == b.buffers &&
         a.ranks == b.ranks && a.bytes == b.bytes;
}

template <typename T>
void replace_or_add(std::vector<T>& all, T one) {
  const auto known = std::find_if(all.begin(), all.end(), [&](const T& other) { return same(one, other); });
  if (known == all.end()) {
    all.push_back(std::move(one));
  } else {
    *known = std::move(one);
  }
}

std::string cpu_name() {
  try {
    std::istringstream facts(local_files().read("/proc/cpuinfo"));
    for (std::string line; std::getline(facts, line);) {
      if (line.rfind("model name", 0) != 0) continue;
      const auto at = line.find(": ");
      if (at != std::string::npos) return line.substr(at + 2);
    }
  } catch (const Error&) {
    // Then it has no name.
  }
  return "unknown";
}

LinkCalibration link_from(const Json& json) {
  LinkCalibration link;
  link.transport = json.at("transport");
  link.buffers = json.at("buffers");
  link.ranks = json.at("ranks");
  link.fit.cost.alpha_s = json.at("alpha_s");
  link.fit.cost.beta_s = json.at("beta_s_per_byte");
  link.fit.relative_error = json.at("relative_error");
  link.fit.worst_error = json.at("worst_error");
  link.date = json.at("date");
  return link;
}

Json to_json(const LinkCalibration& link) {
  return {{"transport", link.transport},
          {"buffers", link.buffers},
          {"ranks", link.ranks},
          {"alpha_s", link.fit.cost.alpha_s},
          {"beta_s_per_byte", link.fit.cost.beta_s},
          {"relative_error", link.fit.relative_error},
          {"worst_error", link.fit.worst_error},
          {"date", link.date}};
}

CollectiveCalibration collective_from(const Json& json) {
  CollectiveCalibration one;
  one.op = json.at("op");
  one.algorithm = json.at("algorithm");
  one.transport = json.at("transport");
  one.buffers = json.at("buffers");
  one.ranks = json.at("ranks");
  one.bytes = json.at("bytes");
  one.median_s = json.at("median_s");
  one.p95_s = json.at("p95_s");
  return one;
}

Json to_json(const CollectiveCalibration& one) {
  return {{"op", one.op},       {"algorithm", one.algorithm}, {"transport", one.transport}, {"buffers", one.buffers},
          {"ranks", one.ranks}, {"bytes", one.bytes},         {"median_s", one.median_s},   {"p95_s", one.p95_s}};
}

Calibration parse(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.at("format") != kFormat || json.at("version") != kVersion) {
    throw Error(ErrorCode::kCorrupt, fmt::format("it is not '{}' version {}", kFormat, kVersion));
  }
  Calibration calibration;
  calibration.host = json.at("host");
  calibration.cpu = json.at("cpu");
  calibration.cores = json.at("cores");
  calibration.date = json.at("date");
  calibration.gamma_s = json.at("gamma_s_per_byte");
  calibration.kappa_s = json.at("kappa_s_per_byte");
  for (const Json& link : json.at("links")) calibration.links.push_back(link_from(link));
  for (const Json& one : json.at("collectives")) calibration.collectives.push_back(collective_from(one));
  return calibration;
}

}  // namespace

void Calibration::put(LinkCalibration link) { replace_or_add(links, std::move(link)); }

void Calibration::put(CollectiveCalibration collective) { replace_or_add(collectives, std::move(collective)); }

const LinkCalibration* Calibration::link(std::string_view transport, std::string_view buffers, int ranks) const {
  const LinkCalibration* nearest = nullptr;
  for (const LinkCalibration& link : links) {
    if (link.transport != transport || link.buffers != buffers) continue;
    if (nearest == nullptr || std::abs(link.ranks - ranks) < std::abs(nearest->ranks - ranks)) nearest = &link;
  }
  return nearest;
}

std::string calibration_path() {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.cache";
  return folder.empty() ? "" : folder + "/convoy/calibration.json";
}

Calibration this_machine() {
  Calibration calibration;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) calibration.host = name.data();
  calibration.cpu = cpu_name();
  calibration.cores = static_cast<int>(std::thread::hardware_concurrency());
  calibration.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return calibration;
}

std::optional<Calibration> read_calibration(Files& files, const std::string& path) {
  if (!files.exists(path)) return std::nullopt;
  const auto refuse = [&](const std::string& why) -> Calibration {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is no calibration: {}", path, why));
  };
  try {
    return parse(files.read(path));
  } catch (const nlohmann::json::exception& error) {
    return refuse(error.what());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    return refuse(error.message());
  }
}

std::optional<Calibration> read_own_calibration(Files& files, const std::string& path) {
  auto known = path.empty() ? std::nullopt : read_calibration(files, path);
  const Calibration own = this_machine();
  if (known && (known->host != own.host || known->cpu != own.cpu || known->cores != own.cores)) known.reset();
  return known;
}

void write_calibration(Files& files, const std::string& path, const Calibration& calibration) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"host", calibration.host},
               {"cpu", calibration.cpu},
               {"cores", calibration.cores},
               {"date", calibration.date},
               {"gamma_s_per_byte", calibration.gamma_s},
               {"kappa_s_per_byte", calibration.kappa_s}};
  json["links"] = Json::array();
  for (const LinkCalibration& link : calibration.links) json["links"].push_back(to_json(link));
  json["collectives"] = Json::array();
  for (const CollectiveCalibration& one : calibration.collectives) json["collectives"].push_back(to_json(one));
  files.make_directories(parent_path(path));
  write_atomic(files, path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<law::Machine> machine_of(const Calibration& calibration, std::string_view transport, int ranks) {
  const LinkCalibration* const inside = calibration.link(transport, "shared", ranks);
  if (inside == nullptr) return std::nullopt;
  const LinkCalibration* const between = calibration.link("gloo", "shared", ranks);
  law::Machine machine;
  machine.inside = inside->fit.cost;
  machine.between = between != nullptr ? between->fit.cost : inside->fit.cost;
  machine.gamma_s = calibration.gamma_s;
  machine.kappa_s = calibration.kappa_s;
  return machine;
}

std::optional<law::Machine> machine_of(const std::optional<Calibration>& calibration, const spec::CommRecipe& comm,
                                       int ranks) {
  const auto measured = calibration ? machine_of(*calibration, comm.transport, ranks) : std::nullopt;
  const bool written = comm.inside_latency_us > 0 && comm.inside_gbytes_per_s > 0 && comm.between_latency_us > 0 &&
                       comm.between_gbytes_per_s > 0;
  if (!measured && !written) return std::nullopt;
  law::Machine machine = measured.value_or(law::Machine());
  const auto write = [](law::LinkCost& link, double latency_us, double gbytes_per_s) {
    if (latency_us > 0) link.alpha_s = latency_us * 1e-6;
    if (gbytes_per_s > 0) link.beta_s = 1e-9 / gbytes_per_s;
  };
  write(machine.inside, comm.inside_latency_us, comm.inside_gbytes_per_s);
  write(machine.between, comm.between_latency_us, comm.between_gbytes_per_s);
  if (calibration && !measured) {
    machine.gamma_s = calibration->gamma_s;
    machine.kappa_s = calibration->kappa_s;
  }
  return machine;
}

}  // namespace convoy::plan

#include "convoy/observe/memory_report.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

using nlohmann::ordered_json;

// A line reads "VmRSS:     1234 kB".
std::optional<std::int64_t> status_bytes(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return std::strtoll(std::string(status.substr(at + key.size(), 32)).c_str(), nullptr, 10) * 1024;
}

ordered_json categories_json(const MemoryBytes& bytes) {
  ordered_json json;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    json[std::string(to_string(static_cast<MemoryCategory>(i)))] = bytes[i];
  }
  return json;
}

}  // namespace

std::optional<ResidentMemory> read_resident_memory(Files& files, const std::string& path) {
  std::string status;
  try {
    status = files.read(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto now = status_bytes(status, "VmRSS:");
  const auto peak = status_bytes(status, "VmHWM:");
  if (!now || !peak) return std::nullopt;
  return ResidentMemory{*now, *peak};
}

ordered_json to_json(const MemoryPeak& peak) {
  ordered_json json = categories_json(peak.categories);
  json["total"] = peak.total;
  json["peak_phase"] = std::string(to_string(peak.phase));
  return json;
}

ordered_json memory_json(const MemoryMeter& meter, const std::optional<ResidentMemory>& resident) {
  ordered_json json = to_json(meter.peak());
  json["by_phase"] = ordered_json::object();
  for (std::size_t i = 0; i < kMemoryPhases; ++i) {
    const MemoryPeak peak = meter.peak(static_cast<MemoryPhase>(i));
    ordered_json categories = categories_json(peak.categories);
    categories["total"] = peak.total;
    json["by_phase"][std::string(to_string(static_cast<MemoryPhase>(i)))] = std::move(categories);
  }
  json["highest"] = categories_json(meter.highest());
  json["resident"] = nullptr;
  if (resident) json["resident"] = {{"now", resident->now_bytes}, {"peak", resident->peak_bytes}};
  return json;
}

}  // namespace convoy::observe

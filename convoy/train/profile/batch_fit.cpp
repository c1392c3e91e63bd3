#include "convoy/train/profile/batch_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

std::optional<std::string> try_read(Files& files, const std::string& path) {
  try {
    return files.read(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A line reads "MemTotal:    1234 kB".
std::int64_t meminfo_bytes(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + key.size(), nullptr, 10) * 1024;
}

// A group's file holds a number, or "max" without a limit; version 1 writes nearly 2^63 for none.
void take_limit(Files& files, const std::string& path, std::optional<std::int64_t>& least) {
  const auto text = try_read(files, path);
  if (!text || text->empty() || text->front() < '0' || text->front() > '9') return;
  const auto bytes = static_cast<std::int64_t>(std::strtoull(text->c_str(), nullptr, 10) >> 1) * 2;
  if (bytes > 0) least = std::min(least.value_or(bytes), bytes);
}

// The group and all above it: each may have a limit. A line of the list reads "number:controllers:path".
void take_groups(Files& files, std::optional<std::int64_t>& least) {
  std::istringstream lines(try_read(files, "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool memory = controllers.find("memory") != std::string::npos;
    if (!controllers.empty() && !memory) continue;
    const std::string root = memory ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string file = memory ? "/memory.limit_in_bytes" : "/memory.max";
    for (std::string path = line.substr(second + 1); path.size() > 1; path = path.substr(0, path.rfind('/'))) {
      take_limit(files, root + path + file, least);
    }
    take_limit(files, root + file, least);
  }
}

}  // namespace

MemoryLimit read_memory_limit(Files& files) {
  const std::int64_t machine = meminfo_bytes(files.read("/proc/meminfo"), "MemTotal:");
  if (machine <= 0) throw Error(ErrorCode::kIo, "/proc/meminfo does not say how much memory there is");
  std::optional<std::int64_t> group;
  take_groups(files, group);
  if (group && *group < machine) return {*group, "cgroup"};
  return {machine, "machine"};
}

std::int64_t read_available_memory(Files& files) {
  return meminfo_bytes(try_read(files, "/proc/meminfo").value_or(""), "MemAvailable:");
}

BatchFit fit_batch(const PassPoint& one, const PassPoint& other) {
  CONVOY_CHECK(one.samples != other.samples, "a line needs two different batch sizes");
  BatchFit fit;
  fit.bytes_per_sample =
      static_cast<double>(other.bytes - one.bytes) / static_cast<double>(other.samples - one.samples);
  fit.base_bytes = static_cast<double>(one.bytes) - fit.bytes_per_sample * static_cast<double>(one.samples);
  return fit;
}

std::int64_t largest_batch(const BatchFit& fit, double room_bytes) {
  if (fit.bytes_per_sample <= 0.0) return room_bytes >= fit.base_bytes ? 1 : 0;
  return std::max<std::int64_t>(
      0, static_cast<std::int64_t>(std::floor((room_bytes - fit.base_bytes) / fit.bytes_per_sample)));
}

}  // namespace convoy::train

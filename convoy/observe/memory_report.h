// What a report says about memory: the peak by category and phase, and beside it what the operating system counts.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/base/files.h"
#include "convoy/observe/memory_meter.h"

namespace convoy::observe {

/// Pages that this process has in memory, by the operating system's count: programs, libraries, stacks and what
/// allocators keep for later, beside what the meter counts. Pages that ranks share count in each of them.
struct ResidentMemory {
  /// Now.
  std::int64_t now_bytes = 0;
  /// The most so far.
  std::int64_t peak_bytes = 0;
};

/// Reads it from a process's status file.
/// Errors:     none: nothing where the system does not tell
std::optional<ResidentMemory> read_resident_memory(Files& files, const std::string& path = "/proc/self/status");

/// Writes a peak: each category under its name, `total`, and `peak_phase`.
nlohmann::ordered_json to_json(const MemoryPeak& peak);

/// Writes the meter's peak as above, with `by_phase` (the peak of each phase), `highest` (each category at its own worst
/// moment) and `resident` (`now`, `peak`; null where it is not known). All numbers are bytes.
nlohmann::ordered_json memory_json(const MemoryMeter& meter, const std::optional<ResidentMemory>& resident);

}  // namespace convoy::observe

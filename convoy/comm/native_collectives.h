// NativeCollectives: collectives that a transport's own library does, where a schedule's algorithm is "native".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::comm {

struct Collective;

/// The algorithm of schedules that leave everything to the transport's library. In which order that adds up is its own
/// affair: the bits of a sum depend on the number of ranks and on the library's version, so it is not reproducible.
inline constexpr std::string_view kNative = "native";

/// Returns whether the transport's library is to run a schedule; a group of one needs none.
inline bool is_native(const spec::Schedule& schedule) {
  return schedule.algorithm == kNative && schedule.ranks.size() > 1;
}

/// Collectives of a library.
/// Threads:    the transport's one caller
class NativeCollectives {
 public:
  virtual ~NativeCollectives() = default;
  /// Returns why the library cannot do an operation; nothing when it can. The same on all ranks.
  virtual std::optional<std::string> refusal(const Collective& collective) const = 0;
  /// Starts an operation that all ranks have agreed on; one at a time. The transport's signal changes when it ends.
  virtual void start(const Collective& collective) = 0;
  /// Returns whether the operation that was started is complete on this rank; from then on its output is there.
  virtual bool finished() = 0;
};

}  // namespace convoy::comm

// How the ranks of a group find each other in a store before they have a transport.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/clock.h"
#include "convoy/comm/store.h"

namespace convoy::comm {

/// A group that forms: every rank leaves a text for all others.
struct Meeting {
  /// The group's name and generation.
  std::string group = "world";
  /// How often the group was formed anew.
  std::uint64_t generation = 1;
  /// This rank and the number of ranks.
  int rank = 0;
  /// The number of ranks.
  int size = 1;
  /// The whole length of the wait, for messages.
  Duration limit{};

  /// Returns the name of one of the group's keys.
  std::string key(const std::string& name) const;
  /// Leaves this rank's text under `topic` and returns all ranks' texts. The keys stay until leave.
  /// Errors:     kTimeout naming the ranks that did not come
  std::vector<std::string> exchange(Store& store, const std::string& topic, const std::string& text,
                                    const Deadline& deadline) const;
  /// Takes this rank's text away; errors are ignored, since a store that is gone has no keys.
  void leave(Store& store, const std::string& topic) const noexcept;
  /// Throws kTimeout: these ranks did not come.
  [[noreturn]] void fail_missing(const std::vector<int>& missing) const;
};

}  // namespace convoy::comm

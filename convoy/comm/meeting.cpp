// Texts of ranks in a store.
#include "convoy/comm/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

// A wait on one key is cut into slices, so that the others are looked at too.
constexpr Duration kSlice = std::chrono::milliseconds(50);

}  // namespace

std::string Meeting::key(const std::string& name) const {
  return fmt::format("group/{}/{}/{}", group, generation, name);
}

std::vector<std::string> Meeting::exchange(Store& store, const std::string& topic, const std::string& text,
                                           const Deadline& deadline) const {
  store.set(key(fmt::format("{}/{}", topic, rank)), text);
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  std::vector<int> missing;
  for (int other = 0; other < size; ++other) missing.push_back(other);
  while (true) {
    std::erase_if(missing, [&](int other) {
      auto found = store.try_get(key(fmt::format("{}/{}", topic, other)));
      if (found) texts[static_cast<std::size_t>(other)] = std::move(*found);
      return found.has_value();
    });
    if (missing.empty()) return texts;
    if (deadline.expired()) fail_missing(missing);
    try {
      store.get(key(fmt::format("{}/{}", topic, missing.front())), std::min(kSlice, deadline.remaining()));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
    }
  }
}

void Meeting::leave(Store& store, const std::string& topic) const noexcept {
  try {
    store.remove(key(fmt::format("{}/{}", topic, rank)));
  } catch (...) {
    // The store is gone, and the keys with it.
  }
}

void Meeting::fail_missing(const std::vector<int>& missing) const {
  throw Error(ErrorCode::kTimeout, fmt::format("rank{} {} did not come to group '{}' (generation {}) within {:.1f} s",
                                               missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), group,
                                               generation, to_seconds(limit)));
}

}  // namespace convoy::comm

// Builds all-gather schedules, each of one phase.
#include "convoy/spec/collectives/all_gather.h"

#include <numeric>

#include "convoy/base/error.h"
#include "convoy/spec/phases/phases.h"

namespace convoy::spec {
namespace {

using Phase = int (*)(ScheduleBuilder&, int, const Team&, const View&, const View&);

Schedule all_gather(const char* algorithm, Phase phase, const std::vector<std::int64_t>& parts,
                    const std::vector<int>& order) {
  const int ranks = static_cast<int>(parts.size());
  std::vector<std::int64_t> begins;
  std::int64_t elements = 0;
  for (const std::int64_t part : parts) {
    if (part < 0) throw Error(ErrorCode::kInvalidArgument, "a part has a negative number of elements");
    begins.push_back(elements);
    elements += part;
  }
  ScheduleBuilder builder("all_gather", algorithm, ranks, elements);
  builder.sizes().input_elements = parts;
  Team team;
  team.ranks = ranks_in_order(ranks, order);
  for (const int rank : team.ranks) {
    const auto r = static_cast<std::size_t>(rank);
    team.parts.push_back({begins[r], begins[r] + parts[r]});
  }
  phase(builder, 0, team, buffer_view(BufferKind::kInput, begins), buffer_view(BufferKind::kOutput));
  return builder.finish();
}

}  // namespace

Schedule direct_all_gather(const std::vector<std::int64_t>& parts, const CollectiveOptions& options) {
  return all_gather("direct", direct_all_gather, parts, options.order);
}

Schedule ring_all_gather(const std::vector<std::int64_t>& parts, const CollectiveOptions& options) {
  return all_gather("ring", ring_all_gather, parts, options.order);
}

Schedule doubling_all_gather(const std::vector<std::int64_t>& parts) {
  return all_gather("doubling", folded_all_gather, parts, {});
}

Schedule bruck_all_gather(const std::vector<std::int64_t>& parts) {
  return all_gather("bruck", bruck_all_gather, parts, {});
}

}  // namespace convoy::spec

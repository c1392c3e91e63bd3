// Teams of ranks: their order, their parts, and the core that is a power of two.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <numeric>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/phases/phases.h"

namespace convoy::spec {

Team even_team(std::vector<int> ranks, ElementRange range) {
  Team team;
  const int size = static_cast<int>(ranks.size());
  for (int position = 0; position < size; ++position) {
    const ElementRange part = shard_range(range.size(), size, position, 1);
    team.parts.push_back({range.begin + part.begin, range.begin + part.end});
  }
  team.ranks = std::move(ranks);
  return team;
}

std::vector<int> ranks_in_order(int ranks, const std::vector<int>& order) {
  std::vector<int> result(static_cast<std::size_t>(std::max(0, ranks)));
  std::iota(result.begin(), result.end(), 0);
  if (order.empty()) return result;
  if (!std::is_permutation(result.begin(), result.end(), order.begin(), order.end())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the order {} does not name each of {} ranks once", fmt::join(order, " "), ranks));
  }
  return order;
}

int ceil_log2(int n) { return n <= 1 ? 0 : std::bit_width(static_cast<unsigned>(n - 1)); }

Folded fold(const Team& team) {
  Folded folded;
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(team.size())));
  const int extras = team.size() - core;
  for (int position = 0; position < core; ++position) {
    const bool paired = position < extras;
    const int first = paired ? 2 * position : position + extras;
    folded.core.ranks.push_back(team.rank(first));
    folded.core.parts.push_back(team.span(first, first + (paired ? 2 : 1)));
    folded.extras.push_back(paired ? team.rank(first + 1) : -1);
    folded.own_parts.push_back(team.part(first));
    folded.extra_parts.push_back(paired ? team.part(first + 1) : ElementRange{});
  }
  return folded;
}

View view_of_core(const Folded& folded, const View& paired, const View& alone) {
  std::vector<int> with_extra;
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    if (folded.extras[i] >= 0) with_extra.push_back(folded.core.ranks[i]);
  }
  return [with_extra = std::move(with_extra), paired, alone](int rank, ElementRange range) {
    const bool has_extra = std::find(with_extra.begin(), with_extra.end(), rank) != with_extra.end();
    return has_extra ? paired(rank, range) : alone(rank, range);
  };
}

int fold_in(ScheduleBuilder& builder, int round, const Folded& folded, ElementRange range, const View& from,
            const View& sums) {
  bool any = false;
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    const int extra = folded.extras[i];
    const int partner = folded.core.ranks[i];
    if (extra < 0) continue;
    const Chunk taken = builder.take(round, extra, from(extra, range), partner);
    builder.add(round, partner, sums(partner, range), from(partner, range), taken, false);
    any = true;
  }
  return round + (any ? 1 : 0);
}

int fold_out(ScheduleBuilder& builder, int round, const Folded& folded, ElementRange range, const View& whole) {
  bool any = false;
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    const int extra = folded.extras[i];
    const int partner = folded.core.ranks[i];
    if (extra < 0) continue;
    builder.transfer(round, partner, whole(partner, range), extra, whole(extra, range));
    any = true;
  }
  return round + (any ? 1 : 0);
}

}  // namespace convoy::spec

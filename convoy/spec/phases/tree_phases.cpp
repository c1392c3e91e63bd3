// Phases along a binomial tree: position 0 collects all parts, or deals them.
#include <algorithm>

#include "convoy/spec/phases/phases.h"

namespace convoy::spec {
namespace {

// Passes a range on, in two messages when it lies across the seam.
void pass(ScheduleBuilder& builder, int round, int from, const View& source, int to, const View& target,
          ElementRange range, std::int64_t seam) {
  const std::int64_t middle = std::clamp(seam, range.begin, range.end);
  for (const ElementRange piece : {ElementRange{range.begin, middle}, ElementRange{middle, range.end}}) {
    builder.transfer(round, from, source(from, piece), to, target(to, piece));
  }
}

}  // namespace

int subtree_end(int position, int size) {
  return position == 0 ? size : std::min(size, position + (position & -position));
}

int binomial_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole,
                    std::int64_t seam) {
  const int size = team.size();
  for (int p = 0; p < size; ++p) {
    const int rank = team.rank(p);
    const bool passes_on = p == 0 || subtree_end(p, size) > p + 1;
    if (passes_on) builder.copy(round, rank, whole(rank, team.part(p)), own(rank, team.part(p)));
  }
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    for (int p = distance; p < size; p += 2 * distance) {
      const int end = subtree_end(p, size);
      pass(builder, round, team.rank(p), end == p + 1 ? own : whole, team.rank(p - distance), whole, team.span(p, end),
           seam);
    }
  }
  return size == 1 ? round + 1 : round;
}

int binomial_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& whole, const View& results,
                     std::int64_t seam) {
  const int size = team.size();
  for (int distance = 1 << ceil_log2(size) >> 1; distance > 0; distance /= 2, ++round) {
    for (int p = distance; p < size; p += 2 * distance) {
      const int end = subtree_end(p, size);
      pass(builder, round, team.rank(p - distance), whole, team.rank(p), end == p + 1 ? results : whole,
           team.span(p, end), seam);
    }
  }
  const int last = std::max(0, round - 1);
  for (int p = 0; p < size; ++p) {
    const int rank = team.rank(p);
    const bool passed_on = p == 0 || subtree_end(p, size) > p + 1;
    if (passed_on) builder.copy(last, rank, results(rank, team.part(p)), whole(rank, team.part(p)));
  }
  return size == 1 ? round + 1 : round;
}

}  // namespace convoy::spec

// Phases after which each position holds the sum of its own part.
#include <utility>

#include "convoy/spec/phases/phases.h"

namespace convoy::spec {

int settle(ScheduleBuilder& builder, int round, int rank, ElementRange range, const View& from, const View& results,
           bool final) {
  builder.reduce(round, rank, results(rank, range), {from(rank, range)}, {0}, final);
  return round + 1;
}

int direct_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& results,
                          bool final) {
  const int size = team.size();
  std::vector<ReplicaRange> leaves;
  std::vector<std::vector<Chunk>> summands(static_cast<std::size_t>(size));
  for (int p = 0; p < size; ++p) {
    leaves.push_back({p, p + 1});
    summands[static_cast<std::size_t>(p)].resize(static_cast<std::size_t>(size));
  }
  for (int step = 0; step < size; ++step) {
    for (int p = 0; p < size; ++p) {
      const int owner = wrap(p + step, size);
      const Chunk sent = from(team.rank(p), team.part(owner));
      summands[static_cast<std::size_t>(owner)][static_cast<std::size_t>(p)] =
          step == 0 ? sent : builder.take(round, team.rank(p), sent, team.rank(owner));
    }
  }
  const std::vector<int> program = tree_program(size, leaves);
  for (int p = 0; p < size; ++p) {
    builder.reduce(round, team.rank(p), results(team.rank(p), team.part(p)),
                   std::move(summands[static_cast<std::size_t>(p)]), program, final);
  }
  return round + 1;
}

int pairwise_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                            const View& results, bool final) {
  const int size = team.size();
  if (size == 1) return settle(builder, round, team.rank(0), team.part(0), from, results, final);
  for (int step = 1; step < size; ++step, ++round) {
    const bool last = step + 1 == size;
    for (int p = 0; p < size; ++p) {
      const int rank = team.rank(p);
      const int sender = team.rank(p - step);
      const ElementRange part = team.part(p);
      const Chunk taken = builder.take(round, sender, from(sender, part), rank);
      builder.add(round, rank, (last ? results : sums)(rank, part), (step == 1 ? from : sums)(rank, part), taken,
                  last && final);
    }
  }
  return round;
}

int ring_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                        const View& results, bool final) {
  const int size = team.size();
  if (size == 1) return settle(builder, round, team.rank(0), team.part(0), from, results, final);
  for (int step = 0; step + 1 < size; ++step, ++round) {
    const bool last = step + 2 == size;
    for (int p = 0; p < size; ++p) {
      const int rank = team.rank(p);
      const int left = team.rank(p - 1);
      const ElementRange part = team.part(p - 2 - step);
      const Chunk taken = builder.take(round, left, (step == 0 ? from : sums)(left, part), rank);
      builder.add(round, rank, (last ? results : sums)(rank, part), taken, from(rank, part), last && final);
    }
  }
  return round;
}

int halving_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                           const View& results, bool final) {
  const int size = team.size();
  if (size == 1) return settle(builder, round, team.rank(0), team.part(0), from, results, final);
  for (int distance = size / 2; distance > 0; distance /= 2, ++round) {
    const View& source = distance == size / 2 ? from : sums;
    const View& target = distance == 1 ? results : sums;
    for (int p = 0; p < size; ++p) {
      if ((p & distance) != 0) continue;
      const int base = p / (2 * distance) * (2 * distance);
      const ElementRange low = team.span(base, base + distance);
      const ElementRange high = team.span(base + distance, base + 2 * distance);
      const int lower = team.rank(p);
      const int upper = team.rank(p + distance);
      const Chunk for_upper = builder.take(round, lower, source(lower, high), upper);
      const Chunk for_lower = builder.take(round, upper, source(upper, low), lower);
      // The lower position's value always stands on the left.
      builder.add(round, lower, target(lower, low), source(lower, low), for_lower, distance == 1 && final);
      builder.add(round, upper, target(upper, high), for_upper, source(upper, high), distance == 1 && final);
    }
  }
  return round;
}

int folded_reduce_scatter(ScheduleBuilder& builder, int round, const Team& team, const View& from, const View& sums,
                          const View& results, bool final) {
  const Folded folded = fold(team);
  round = fold_in(builder, round, folded, team.span(0, team.size()), from, sums);
  round = halving_reduce_scatter(builder, round, folded.core, view_of_core(folded, sums, from), sums,
                                 view_of_core(folded, sums, results), final);
  bool any = false;
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    const int extra = folded.extras[i];
    const int partner = folded.core.ranks[i];
    if (extra < 0) continue;
    builder.transfer(round, partner, sums(partner, folded.extra_parts[i]), extra,
                     results(extra, folded.extra_parts[i]));
    builder.copy(round, partner, results(partner, folded.own_parts[i]), sums(partner, folded.own_parts[i]));
    any = true;
  }
  return round + (any ? 1 : 0);
}

}  // namespace convoy::spec

// Phases after which every position holds all parts.
#include <algorithm>

#include "convoy/spec/phases/phases.h"

namespace convoy::spec {
namespace {

void copy_own(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  for (int p = 0; p < team.size(); ++p) {
    builder.copy(round, team.rank(p), whole(team.rank(p), team.part(p)), own(team.rank(p), team.part(p)));
  }
}

}  // namespace

int direct_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  for (int step = 1; step < team.size(); ++step) {
    for (int p = 0; p < team.size(); ++p) {
      const int sender = team.rank(p);
      const int receiver = team.rank(p + step);
      builder.transfer(round, sender, own(sender, team.part(p)), receiver, whole(receiver, team.part(p)));
    }
  }
  copy_own(builder, round, team, own, whole);
  return round + 1;
}

int ring_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  const int size = team.size();
  copy_own(builder, round, team, own, whole);
  for (int step = 0; step + 1 < size; ++step) {
    for (int p = 0; p < size; ++p) {
      const int rank = team.rank(p);
      const int right = team.rank(p + 1);
      const ElementRange part = team.part(p - step);
      builder.transfer(round + step, rank, (step == 0 ? own : whole)(rank, part), right, whole(right, part));
    }
  }
  return round + std::max(1, size - 1);
}

int doubling_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  const int size = team.size();
  copy_own(builder, round, team, own, whole);
  if (size == 1) return round + 1;
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    for (int p = 0; p < size; ++p) {
      const int rank = team.rank(p);
      const int partner = team.rank(p ^ distance);
      const int base = p / distance * distance;
      const ElementRange held = team.span(base, base + distance);
      builder.transfer(round, rank, (distance == 1 ? own : whole)(rank, held), partner, whole(partner, held));
    }
  }
  return round;
}

int folded_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  const Folded folded = fold(team);
  const bool any = folded.core.size() < team.size();
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    const int extra = folded.extras[i];
    const int partner = folded.core.ranks[i];
    if (extra < 0) continue;
    const ElementRange part = folded.extra_parts[i];
    builder.transfer(round, extra, own(extra, part), partner, whole(partner, part));
    builder.copy(round, extra, whole(extra, part), own(extra, part));
    builder.copy(round, partner, whole(partner, folded.own_parts[i]), own(partner, folded.own_parts[i]));
  }
  round = doubling_all_gather(builder, round + (any ? 1 : 0), folded.core, view_of_core(folded, whole, own), whole);
  const ElementRange range = team.span(0, team.size());
  for (std::size_t i = 0; i < folded.extras.size(); ++i) {
    const int extra = folded.extras[i];
    const int partner = folded.core.ranks[i];
    if (extra < 0) continue;
    const ElementRange part = folded.extra_parts[i];
    for (const ElementRange piece : {ElementRange{range.begin, part.begin}, ElementRange{part.end, range.end}}) {
      builder.transfer(round, partner, whole(partner, piece), extra, whole(extra, piece));
    }
  }
  return round + (any ? 1 : 0);
}

int bruck_all_gather(ScheduleBuilder& builder, int round, const Team& team, const View& own, const View& whole) {
  const int size = team.size();
  copy_own(builder, round, team, own, whole);
  if (size == 1) return round + 1;
  for (int held = 1; held < size; held *= 2, ++round) {
    const int sent = std::min(held, size - held);
    for (int p = 0; p < size; ++p) {
      const int rank = team.rank(p);
      const int receiver = team.rank(p - held);
      const auto pass = [&](int begin, int end) {
        const ElementRange run = team.span(begin, end);
        builder.transfer(round, rank, (held == 1 ? own : whole)(rank, run), receiver, whole(receiver, run));
      };
      pass(p, std::min(p + sent, size));
      if (p + sent > size) pass(0, p + sent - size);
    }
  }
  return round;
}

}  // namespace convoy::spec

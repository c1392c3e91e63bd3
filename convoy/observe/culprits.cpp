// Finds who holds an operation up, so that the culprit is named and not a rank that waits for the culprit.
//
// Words: an operation is *stuck* when ranks are inside it and others are not; the earliest stuck operation is the one
// to look at, since whoever is inside it cannot have entered a later one. Inside it, *waits_for* leads from rank to
// rank.
#include <fmt/format.h>

#include <algorithm>

#include "convoy/observe/progress_board.h"

namespace convoy::observe {
namespace {

struct View {
  std::vector<BoardLine> lines;
  std::string operation;
  std::uint64_t sequence = 0;
  int waiting_rank = 0;
  std::int64_t now_ns = 0;
  Duration silent_after{};

  const BoardLine& line(int rank) const { return lines[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(lines.size()); }
  bool missing(int rank) const { return line(rank).sequence < sequence; }
  bool inside(int rank) const { return line(rank).sequence == sequence && line(rank).phase != BoardPhase::kOutside; }
  bool silent(int rank) const {
    const std::int64_t last = line(rank).heartbeat_ns;
    return last != 0 && now_ns - last > silent_after.count();
  }
};

std::string sign_of_life(const View& view, int rank) {
  const std::int64_t last = view.line(rank).heartbeat_ns;
  if (last == 0) return "no sign of life yet";
  return fmt::format("last sign of life {:.1f} s ago",
                     static_cast<double>(std::max<std::int64_t>(0, view.now_ns - last)) * 1e-9);
}

std::string describe_missing(const View& view, int rank) {
  const std::uint64_t last = view.line(rank).sequence;
  return fmt::format("rank {} has not entered {} ({}, {})", rank, view.operation, sign_of_life(view, rank),
                     last == 0 ? "entered nothing so far" : fmt::format("last entered #{}", last));
}

std::string describe_inside(const View& view, int rank) {
  const BoardLine& line = view.line(rank);
  std::string where = "has left";
  if (view.inside(rank)) {
    where = fmt::format("is {} in", view.silent(rank) ? "silent" : "the one that others wait for");
  }
  return fmt::format("rank {} {} {} after {} messages ({}{})", rank, where, view.operation, line.chunk,
                     sign_of_life(view, rank),
                     line.waits_for >= 0 ? fmt::format(", waits for rank {}", line.waits_for) : "");
}

// Reads the board and settles which operation to look at.
View read_board(const ProgressBoard& board, int waiting_rank, std::uint64_t sequence) {
  View view;
  view.sequence = sequence;
  view.waiting_rank = waiting_rank;
  for (int rank = 0; rank < board.ranks(); ++rank) {
    view.lines.push_back(board.line(rank));
    const BoardLine& line = view.lines.back();
    if (line.phase != BoardPhase::kOutside) view.sequence = std::min(view.sequence, line.sequence);
  }
  view.operation = fmt::format("operation #{}", view.sequence);
  for (int rank = 0; rank < board.ranks(); ++rank) {
    const auto posted = board.operation(rank, view.sequence);
    if (!posted) continue;
    view.operation = fmt::format("{} #{}", posted->name.data(), view.sequence);
    break;
  }
  return view;
}

// Follows waits_for from `start` to a rank that waits for nobody; -1 when the chain bites its own tail.
int end_of_chain(const View& view, int start) {
  std::vector<bool> seen(static_cast<std::size_t>(view.ranks()), false);
  int rank = start;
  while (!seen[static_cast<std::size_t>(rank)]) {
    seen[static_cast<std::size_t>(rank)] = true;
    const int next = view.line(rank).waits_for;
    if (!view.inside(rank) || next < 0 || next >= view.ranks()) return rank;
    rank = next;
  }
  return -1;
}

std::vector<int> ends_of_chains(const View& view) {
  std::vector<int> ends;
  const bool start_at_waiter = view.inside(view.waiting_rank) && view.line(view.waiting_rank).waits_for >= 0;
  for (int rank = 0; rank < view.ranks(); ++rank) {
    if (start_at_waiter ? rank != view.waiting_rank : !view.inside(rank)) continue;
    const int end = end_of_chain(view, rank);
    if (end >= 0 && end != view.waiting_rank) ends.push_back(end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

template <typename Describe>
Culprits blame(const View& view, const std::vector<int>& ranks, const Describe& describe) {
  Culprits culprits;
  culprits.ranks = ranks;
  for (const int rank : ranks) culprits.reason += (culprits.reason.empty() ? "" : "; ") + describe(view, rank);
  return culprits;
}

}  // namespace

Culprits find_culprits(const ProgressBoard& board, int waiting_rank, std::uint64_t sequence, std::int64_t now_ns,
                       Duration silent_after) {
  View view = read_board(board, waiting_rank, sequence);
  view.now_ns = now_ns;
  view.silent_after = silent_after;
  std::vector<int> missing;
  std::vector<int> silent;
  for (int rank = 0; rank < view.ranks(); ++rank) {
    if (rank == waiting_rank) continue;
    if (view.missing(rank)) missing.push_back(rank);
    if (view.inside(rank) && view.silent(rank)) silent.push_back(rank);
  }
  if (!missing.empty()) return blame(view, missing, describe_missing);
  if (!silent.empty()) return blame(view, silent, describe_inside);
  const std::vector<int> ends = ends_of_chains(view);
  if (!ends.empty()) return blame(view, ends, describe_inside);
  Culprits nobody;
  nobody.reason =
      fmt::format("all ranks have entered {}, none is silent and none is waited for by all others", view.operation);
  return nobody;
}

}  // namespace convoy::observe

// Draws schedules: as a table of what each rank does, and as a picture of the rounds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "convoy/base/text.h"
#include "convoy/spec/schedule/describe.h"

namespace convoy::spec {
namespace {

// Ranks as a list in which three or more neighbours are a range: "0,2,5-7".
std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    parts.push_back(end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::vector<int> peers_of(const Round& round, OpKind kind) {
  std::vector<int> peers;
  for (const Operation& operation : round) {
    if (operation.kind == kind) peers.push_back(operation.peer);
  }
  return peers;
}

// What a rank does in a round, in the order in which it happens: "> 2 < 1 +".
std::string cell(const Round& round) {
  std::vector<std::string> parts;
  const std::vector<int> to = peers_of(round, OpKind::kSend);
  const std::vector<int> from = peers_of(round, OpKind::kReceive);
  if (!to.empty()) parts.push_back(">" + rank_list(to));
  if (!from.empty()) parts.push_back("<" + rank_list(from));
  bool sums = false;
  bool final = false;
  bool copies = false;
  for (const Operation& operation : round) {
    copies = copies || operation.kind == OpKind::kCopy;
    if (operation.kind != OpKind::kReduce) continue;
    sums = true;
    final = final || operation.final;
  }
  if (sums) parts.push_back(final ? "+!" : "+");
  if (copies) parts.push_back("=");
  return parts.empty() ? "." : fmt::format("{}", fmt::join(parts, " "));
}

// The sizes of a round's messages: "2 each", "1 to 5", or nothing.
std::string message_sizes(const Schedule& schedule, std::size_t round) {
  std::int64_t least = -1;
  std::int64_t most = -1;
  for (const RankRounds& rank : schedule.ranks) {
    if (round >= rank.size()) continue;
    for (const Operation& operation : rank[round]) {
      if (operation.kind != OpKind::kSend) continue;
      const std::int64_t count = operation.target.count;
      least = least < 0 ? count : std::min(least, count);
      most = std::max(most, count);
    }
  }
  if (most < 0) return "";
  return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
}

// A row of the picture: rounds [first, last] in which every rank does the same.
struct Row {
  std::size_t first = 0;
  std::size_t last = 0;
  std::vector<std::string> cells;
  std::string sizes;
};

std::vector<Row> rows_of(const Schedule& schedule) {
  std::vector<Row> rows;
  std::size_t rounds = 0;
  for (const RankRounds& rank : schedule.ranks) rounds = std::max(rounds, rank.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    Row row{round, round, {}, message_sizes(schedule, round)};
    for (const RankRounds& rank : schedule.ranks) row.cells.push_back(round < rank.size() ? cell(rank[round]) : ".");
    if (!rows.empty() && rows.back().cells == row.cells && rows.back().sizes == row.sizes) {
      rows.back().last = round;
    } else {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string title(const Schedule& schedule) {
  const std::string root = schedule.root >= 0 ? fmt::format(", root {}", schedule.root) : "";
  return fmt::format("{} {} of {} elements on {} ranks{}\n", schedule.algorithm, schedule.collective, schedule.elements,
                     schedule.ranks.size(), root);
}

}  // namespace

std::string describe_table(const Schedule& schedule) {
  TextTable table({"rank", "rounds", "messages", "sent", "to", "from", "reduced", "copied", "work"});
  std::vector<std::int64_t> totals(4, 0);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::int64_t busy = 0;
    std::int64_t messages = 0;
    std::int64_t sent = 0;
    std::int64_t reduced = 0;
    std::int64_t copied = 0;
    std::vector<int> to;
    std::vector<int> from;
    for (const Round& round : schedule.ranks[rank]) {
      busy += round.empty() ? 0 : 1;
      for (const Operation& operation : round) {
        const std::int64_t count = operation.target.count;
        if (operation.kind == OpKind::kSend) {
          ++messages;
          sent += count;
          to.push_back(operation.peer);
        } else if (operation.kind == OpKind::kReceive) {
          from.push_back(operation.peer);
        } else if (operation.kind == OpKind::kReduce) {
          reduced += count * (static_cast<std::int64_t>(operation.sources.size()) - 1);
        } else if (operation.kind == OpKind::kCopy) {
          copied += count;
        }
      }
    }
    const std::int64_t work = schedule.work_elements.empty() ? 0 : schedule.work_elements[rank];
    table.add({fmt::format("{}", rank), fmt::format("{}", busy), fmt::format("{}", messages), fmt::format("{}", sent),
               rank_list(to), rank_list(from), fmt::format("{}", reduced), fmt::format("{}", copied),
               fmt::format("{}", work)});
    totals[0] += messages;
    totals[1] += sent;
    totals[2] += reduced;
    totals[3] += copied;
  }
  table.add({"all", "", fmt::format("{}", totals[0]), fmt::format("{}", totals[1]), "", "",
             fmt::format("{}", totals[2]), fmt::format("{}", totals[3]), ""});
  return title(schedule) + table.str();
}

std::string describe_picture(const Schedule& schedule, int width) {
  const std::vector<Row> rows = rows_of(schedule);
  std::vector<std::vector<std::string>> lines = {{"round"}};
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) lines[0].push_back(fmt::format("rank {}", rank));
  lines[0].push_back("elements a message");
  for (const Row& row : rows) {
    lines.push_back({row.first == row.last ? fmt::format("{}", row.first) : fmt::format("{}-{}", row.first, row.last)});
    lines.back().insert(lines.back().end(), row.cells.begin(), row.cells.end());
    lines.back().push_back(row.sizes);
  }
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::size_t shown = schedule.ranks.size();
  if (width > 0) {
    std::size_t used = widths.front() + 2 + widths.back() + 5;
    shown = 0;
    while (shown < schedule.ranks.size() && used + widths[shown + 1] + 2 <= static_cast<std::size_t>(width)) {
      used += widths[++shown] + 2;
    }
  }
  std::string text = title(schedule);
  for (const std::vector<std::string>& line : lines) {
    std::string row = fmt::format("{:>{}}", line.front(), widths.front());
    for (std::size_t i = 1; i <= shown; ++i) row += fmt::format("  {:<{}}", line[i], widths[i]);
    if (shown < schedule.ranks.size()) row += "  ...";
    row += "  " + line.back();
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace convoy::spec

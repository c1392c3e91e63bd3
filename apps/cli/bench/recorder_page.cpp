// Lays the ranks' files side by side; of a rank that left none, others' views of the board tell.
#include "apps/cli/bench/recorder_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/observe/flight_recorder.h"

namespace convoy::cli {
namespace {

using Json = nlohmann::ordered_json;
using observe::FlightLog;

constexpr std::size_t kRows = 12;

// The files of one failed group, by rank.
struct Flight {
  std::map<int, FlightLog> logs;
  int ranks() const { return logs.begin()->second.ranks; }
  // Who failed by itself comes before those who gave up because of it.
  const FlightLog& first() const {
    const auto key = [](const auto& entry) {
      return std::pair(entry.second.code == to_string(ErrorCode::kAborted), entry.second.written_s);
    };
    const auto earlier = [&](const auto& a, const auto& b) { return key(a) < key(b); };
    return std::min_element(logs.begin(), logs.end(), earlier)->second;
  }
  // What the others last saw of a rank: the freshest sign of life counts.
  const observe::FlightBoardLine& seen(int rank) const {
    const observe::FlightBoardLine* best = nullptr;
    for (const auto& [writer, log] : logs) {
      const observe::FlightBoardLine& line = log.board[static_cast<std::size_t>(rank)];
      if (best == nullptr || line.line.sequence > best->line.sequence) best = &line;
    }
    return *best;
  }
};

bool is_flight_file(const std::string& name) { return name.starts_with("flight-") && name.ends_with(".json"); }

bool is_folder(Files& files, const std::string& path) { return files.exists(path + "/."); }

Flight read_flight(Files& files, const std::string& path) {
  const bool folder = is_folder(files, path);
  std::optional<FlightLog> wanted;
  if (!folder) wanted = observe::read_flight_log(files, path);
  const std::string place = folder ? path : parent_path(path);
  std::vector<FlightLog> all;
  for (const std::string& name : files.list(place)) {
    if (is_flight_file(name)) all.push_back(observe::read_flight_log(files, place + "/" + name));
  }
  if (!wanted) {
    if (all.empty()) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("bench: there is no flight recorder's file in {}", path));
    }
    wanted = *std::max_element(all.begin(), all.end(),
                               [](const FlightLog& a, const FlightLog& b) { return a.written_s < b.written_s; });
  }
  Flight flight;
  flight.logs[wanted->rank] = *wanted;
  for (FlightLog& log : all) {
    if (log.group != wanted->group || log.generation != wanted->generation || log.ranks != wanted->ranks) continue;
    flight.logs[log.rank] = std::move(log);
  }
  return flight;
}

const FlightLog::Entry* find(const FlightLog& log, std::uint64_t sequence) {
  for (const FlightLog::Entry& entry : log.operations) {
    if (entry.sequence == sequence) return &entry;
  }
  return nullptr;
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string cell_of(const FlightLog& log, std::uint64_t sequence) {
  const FlightLog::Entry* const entry = find(log, sequence);
  if (entry == nullptr) return sequence <= log.newest_small ? "done, small" : "-";
  if (entry->ended_s > 0 && entry->begun_s > 0) {
    return fmt::format("{} {}", entry->state, duration(entry->ended_s - entry->begun_s));
  }
  const double since = entry->agreed_s > 0 ? entry->agreed_s : entry->begun_s > 0 ? entry->begun_s : entry->queued_s;
  return fmt::format("{} {}", entry->state, duration(log.written_s - since));
}

std::string cell_of_absent(const observe::FlightBoardLine& seen, std::uint64_t sequence) {
  if (sequence > seen.line.sequence) return "not entered";
  if (sequence < seen.line.sequence || seen.line.phase == observe::BoardPhase::kOutside) return "left";
  return seen.line.phase == observe::BoardPhase::kMoving ? "moving" : "entered";
}

std::set<std::uint64_t> newest_sequences(const Flight& flight) {
  std::set<std::uint64_t> sequences;
  for (const auto& [rank, log] : flight.logs) {
    for (const FlightLog::Entry& entry : log.operations) sequences.insert(entry.sequence);
  }
  while (sequences.size() > kRows) sequences.erase(sequences.begin());
  return sequences;
}

std::string what_of(const Flight& flight, std::uint64_t sequence) {
  for (const auto& [rank, log] : flight.logs) {
    if (const FlightLog::Entry* const entry = find(log, sequence)) return entry->what;
  }
  return "?";
}

std::string describe_absent(const Flight& flight, int rank) {
  const observe::FlightBoardLine& seen = flight.seen(rank);
  const std::string sign =
      seen.silent_s < 0 ? "no sign of life" : fmt::format("last sign of life {} before", duration(seen.silent_s));
  if (seen.line.sequence == 0) return fmt::format("rank {} left no file: {}, entered nothing", rank, sign);
  return fmt::format("rank {} left no file: {}, {} #{} after {} messages{}", rank, sign,
                     seen.line.phase == observe::BoardPhase::kOutside ? "last entered" : "inside", seen.line.sequence,
                     seen.line.chunk,
                     seen.line.waits_for >= 0 ? fmt::format(", waiting for rank {}", seen.line.waits_for) : "");
}

Json to_json(const Flight& flight) {
  const FlightLog& first = flight.first();
  Json json = {{"ok", true},
               {"bench", "recorder"},
               {"group", first.group},
               {"generation", first.generation},
               {"ranks", first.ranks},
               {"code", first.code},
               {"message", first.message},
               {"rank", first.rank},
               {"missing", Json::array()},
               {"rows", Json::array()}};
  for (int rank = 0; rank < flight.ranks(); ++rank) {
    if (!flight.logs.contains(rank)) json["missing"].push_back(rank);
  }
  for (const std::uint64_t sequence : newest_sequences(flight)) {
    for (const auto& [rank, log] : flight.logs) {
      const FlightLog::Entry* const entry = find(log, sequence);
      if (entry == nullptr) continue;
      const auto time = [](double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); };
      json["rows"].push_back({{"sequence", sequence},
                              {"what", entry->what},
                              {"rank", rank},
                              {"state", entry->state},
                              {"queued_s", time(entry->queued_s)},
                              {"begun_s", time(entry->begun_s)},
                              {"agreed_s", time(entry->agreed_s)},
                              {"ended_s", time(entry->ended_s)},
                              {"sent_bytes", entry->sent_bytes}});
    }
  }
  return json;
}

void print_table(const Flight& flight) {
  const FlightLog& first = flight.first();
  fmt::print("group '{}', generation {}: files of {} of {} ranks\n", first.group, first.generation, flight.logs.size(),
             flight.ranks());
  fmt::print("rank {} failed first: {}: {}\n", first.rank, first.code, first.message);
  for (int rank = 0; rank < flight.ranks(); ++rank) {
    if (!flight.logs.contains(rank)) fmt::print("{}\n", describe_absent(flight, rank));
  }
  std::string head = fmt::format("\n{:<44}", "operation");
  for (int rank = 0; rank < flight.ranks(); ++rank) head += fmt::format("  {:<16}", fmt::format("rank {}", rank));
  fmt::print("{}\n", head);
  for (const std::uint64_t sequence : newest_sequences(flight)) {
    std::string row = fmt::format("{:<44}", fmt::format("#{} {}", sequence, what_of(flight, sequence)));
    for (int rank = 0; rank < flight.ranks(); ++rank) {
      const auto log = flight.logs.find(rank);
      row += fmt::format("  {:<16}", log != flight.logs.end() ? cell_of(log->second, sequence)
                                                              : cell_of_absent(flight.seen(rank), sequence));
    }
    fmt::print("{}\n", row);
  }
}

}  // namespace

void print_recorder(const std::string& path, bool json) {
  const Flight flight = read_flight(local_files(), path);
  if (json) {
    fmt::print("{}\n", to_json(flight).dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    print_table(flight);
  }
}

}  // namespace convoy::cli

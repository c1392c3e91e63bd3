// Flight logs as JSON; the form is in docs/transports.md.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/observe/flight_recorder.h"

namespace convoy::observe {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kKind = "convoy flight recorder";
constexpr int kFormat = 1;

constexpr std::pair<BoardPhase, std::string_view> kPhases[] = {
    {BoardPhase::kOutside, "outside"}, {BoardPhase::kEntered, "entered"}, {BoardPhase::kMoving, "moving"}};

std::string phase_name(BoardPhase phase) {
  for (const auto& [known, name] : kPhases) {
    if (known == phase) return std::string(name);
  }
  return "outside";
}

BoardPhase phase_of(const std::string& text) {
  for (const auto& [phase, name] : kPhases) {
    if (name == text) return phase;
  }
  throw Error(ErrorCode::kCorrupt, fmt::format("unknown phase '{}'", text));
}

Json time_or_null(double seconds) { return seconds > 0 ? Json(seconds) : Json(nullptr); }
double time_of(const Json& json) { return json.is_null() ? 0 : json.get<double>(); }

Json to_json(const FlightLog& log) {
  Json json = {{"kind", kKind},
               {"format", kFormat},
               {"group", log.group},
               {"generation", log.generation},
               {"rank", log.rank},
               {"ranks", log.ranks},
               {"host", log.host},
               {"written_s", log.written_s},
               {"code", log.code},
               {"message", log.message},
               {"newest_small", log.newest_small},
               {"operations", Json::array()},
               {"board", Json::array()}};
  for (const FlightLog::Entry& entry : log.operations) {
    json["operations"].push_back({{"sequence", entry.sequence},
                                  {"what", entry.what},
                                  {"state", entry.state},
                                  {"queued_s", time_or_null(entry.queued_s)},
                                  {"begun_s", time_or_null(entry.begun_s)},
                                  {"agreed_s", time_or_null(entry.agreed_s)},
                                  {"ended_s", time_or_null(entry.ended_s)},
                                  {"sent_bytes", entry.sent_bytes}});
  }
  for (std::size_t rank = 0; rank < log.board.size(); ++rank) {
    const FlightBoardLine& line = log.board[rank];
    json["board"].push_back({{"rank", rank},
                             {"sequence", line.line.sequence},
                             {"phase", phase_name(line.line.phase)},
                             {"messages", line.line.chunk},
                             {"waits_for", line.line.waits_for >= 0 ? Json(line.line.waits_for) : Json(nullptr)},
                             {"silent_s", line.silent_s >= 0 ? Json(line.silent_s) : Json(nullptr)},
                             {"pid", line.line.pid}});
  }
  return json;
}

FlightLog from_json(const Json& json) {
  if (json.at("kind") != kKind) throw Error(ErrorCode::kCorrupt, "it is of another kind");
  if (json.at("format") != kFormat) {
    throw Error(ErrorCode::kCorrupt, fmt::format("its format is {}, not {}", json.at("format").dump(), kFormat));
  }
  FlightLog log;
  log.group = json.at("group");
  log.generation = json.at("generation");
  log.rank = json.at("rank");
  log.ranks = json.at("ranks");
  log.host = json.at("host");
  log.written_s = json.at("written_s");
  log.code = json.at("code");
  log.message = json.at("message");
  log.newest_small = json.at("newest_small");
  for (const Json& one : json.at("operations")) {
    log.operations.push_back({one.at("sequence"), one.at("what"), one.at("state"), time_of(one.at("queued_s")),
                              time_of(one.at("begun_s")), time_of(one.at("agreed_s")), time_of(one.at("ended_s")),
                              one.at("sent_bytes")});
  }
  for (const Json& one : json.at("board")) {
    FlightBoardLine line;
    line.line.sequence = one.at("sequence");
    line.line.phase = phase_of(one.at("phase"));
    line.line.chunk = one.at("messages");
    line.line.waits_for = one.at("waits_for").is_null() ? -1 : one.at("waits_for").get<int>();
    line.line.pid = one.at("pid");
    line.silent_s = one.at("silent_s").is_null() ? -1 : one.at("silent_s").get<double>();
    log.board.push_back(line);
  }
  if (log.ranks < 1 || log.rank < 0 || log.rank >= log.ranks ||
      log.board.size() != static_cast<std::size_t>(log.ranks)) {
    throw Error(ErrorCode::kCorrupt,
                fmt::format("rank {} of {} has a board of {}", log.rank, log.ranks, log.board.size()));
  }
  return log;
}

}  // namespace

std::string flight_path(const std::string& folder, const std::string& group, int rank) {
  return fmt::format("{}/flight-{}-rank-{}.json", folder, group, rank);
}

void write_flight_log(Files& files, const std::string& folder, const FlightLog& log) {
  files.make_directories(folder);
  const std::string path = flight_path(folder, log.group, log.rank);
  files.remove(path);
  files.append(path, to_json(log).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

FlightLog read_flight_log(Files& files, const std::string& path) {
  try {
    return from_json(Json::parse(files.read(path)));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is no flight recorder's file: {}", path, error.what()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    throw Error(ErrorCode::kCorrupt, fmt::format("{} is no flight recorder's file: {}", path, error.message()));
  }
}

}  // namespace convoy::observe

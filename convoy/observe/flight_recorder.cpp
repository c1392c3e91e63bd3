// Operations in a ring by their number.
#include "convoy/observe/flight_recorder.h"

#include <algorithm>
#include <chrono>

namespace convoy::observe {
namespace {

double utc_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string_view to_string(FlightState state) {
  switch (state) {
    case FlightState::kQueued: return "queued";
    case FlightState::kBegun: return "begun";
    case FlightState::kMoving: return "moving";
    case FlightState::kDone: return "done";
    case FlightState::kFailed: return "failed";
  }
  return "unknown";
}

FlightRecord* FlightRecorder::find(std::uint64_t sequence) {
  FlightRecord& record = kept_[sequence % kKept];
  return record.operation.sequence == sequence ? &record : nullptr;
}

void FlightRecorder::queued(const BoardOperation& operation, TimePoint now) {
  MutexLock lock(mutex_);
  FlightRecord& record = kept_[operation.sequence % kKept];
  record = FlightRecord{};
  record.operation = operation;
  record.queued = now;
}

void FlightRecorder::begun(std::uint64_t sequence, TimePoint now) {
  MutexLock lock(mutex_);
  FlightRecord* const record = find(sequence);
  if (record == nullptr) return;
  record->begun = now;
  record->state = FlightState::kBegun;
}

void FlightRecorder::agreed(std::uint64_t sequence, TimePoint now) {
  MutexLock lock(mutex_);
  FlightRecord* const record = find(sequence);
  if (record == nullptr) return;
  record->agreed = now;
  record->state = FlightState::kMoving;
}

void FlightRecorder::ended(std::uint64_t sequence, bool failed, TimePoint now, std::uint64_t sent_bytes) {
  MutexLock lock(mutex_);
  FlightRecord* const record = find(sequence);
  if (record == nullptr) return;
  record->ended = now;
  record->sent_bytes = sent_bytes;
  record->state = failed ? FlightState::kFailed : FlightState::kDone;
}

std::vector<FlightRecord> FlightRecorder::records() const {
  std::vector<FlightRecord> records;
  MutexLock lock(mutex_);
  for (const FlightRecord& record : kept_) {
    if (record.operation.sequence != 0) records.push_back(record);
  }
  std::sort(records.begin(), records.end(),
            [](const FlightRecord& a, const FlightRecord& b) { return a.operation.sequence < b.operation.sequence; });
  return records;
}

FlightLog make_flight_log(const FlightRecorder& recorder, const ProgressBoard& board, const Error& error) {
  FlightLog log;
  const TimePoint now = system_clock().now();
  log.written_s = utc_seconds();
  log.code = to_string(error.code());
  log.message = error.message();
  const auto utc = [&](TimePoint time) { return time == TimePoint() ? 0 : log.written_s - to_seconds(now - time); };
  for (const FlightRecord& record : recorder.records()) {
    FlightLog::Entry entry;
    entry.sequence = record.operation.sequence;
    entry.what = record.operation.str();
    entry.state = to_string(record.state);
    entry.queued_s = utc(record.queued);
    entry.begun_s = utc(record.begun);
    entry.agreed_s = utc(record.agreed);
    entry.ended_s = utc(record.ended);
    entry.sent_bytes = record.sent_bytes;
    log.operations.push_back(std::move(entry));
  }
  log.newest_small = recorder.newest_small();
  const std::int64_t now_ns = std::chrono::duration_cast<Duration>(now.time_since_epoch()).count();
  for (int rank = 0; rank < board.ranks(); ++rank) {
    FlightBoardLine line{board.line(rank), -1};
    if (line.line.heartbeat_ns != 0) line.silent_s = 1e-9 * static_cast<double>(now_ns - line.line.heartbeat_ns);
    log.board.push_back(line);
  }
  return log;
}

}  // namespace convoy::observe

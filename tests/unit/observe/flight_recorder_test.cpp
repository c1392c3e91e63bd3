// What the flight recorder keeps, and what its file says.
#include "convoy/observe/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convoy/base/error.h"

namespace convoy::observe {
namespace {

using ::testing::HasSubstr;

BoardOperation operation(std::uint64_t sequence) {
  BoardOperation made;
  made.sequence = sequence;
  made.set_name("all_reduce");
  made.elements = 5;
  return made;
}

TimePoint at(double seconds) { return system_clock().now() - std::chrono::milliseconds(static_cast<int>(seconds * 1e3)); }

TEST(FlightRecorder, KeepsTheNewestOperationsInOrder) {
  FlightRecorder recorder;
  for (std::uint64_t sequence = 1; sequence <= FlightRecorder::kKept + 3; ++sequence) {
    recorder.queued(operation(sequence), at(1));
  }
  const std::vector<FlightRecord> records = recorder.records();
  ASSERT_EQ(records.size(), FlightRecorder::kKept);
  EXPECT_EQ(records.front().operation.sequence, 4U);
  EXPECT_EQ(records.back().operation.sequence, FlightRecorder::kKept + 3);
  // What is no longer kept is not mixed up with what took its place.
  recorder.ended(3, true, at(0), 1);
  for (const FlightRecord& record : recorder.records()) EXPECT_EQ(record.state, FlightState::kQueued);
}

TEST(FlightRecorder, FollowsStates) {
  FlightRecorder recorder;
  recorder.queued(operation(1), at(4));
  EXPECT_EQ(recorder.records()[0].state, FlightState::kQueued);
  recorder.begun(1, at(3));
  EXPECT_EQ(recorder.records()[0].state, FlightState::kBegun);
  recorder.agreed(1, at(2));
  EXPECT_EQ(recorder.records()[0].state, FlightState::kMoving);
  recorder.ended(1, false, at(1), 77);
  EXPECT_EQ(recorder.records()[0].state, FlightState::kDone);
  EXPECT_EQ(recorder.records()[0].sent_bytes, 77U);
  recorder.queued(operation(2), at(1));
  recorder.ended(2, true, at(0), 78);
  EXPECT_EQ(recorder.records()[1].state, FlightState::kFailed);
}

TEST(FlightLog, SaysTheSameWhenItIsReadAgain) {
  FlightRecorder recorder;
  recorder.queued(operation(9), at(2));
  recorder.begun(9, at(1));
  recorder.small_done(8);
  std::vector<std::byte> memory(SharedBoard::bytes(3) + 64);
  void* start = memory.data();
  std::size_t space = memory.size();
  SharedBoard board(std::align(64, SharedBoard::bytes(3), start, space), 3);
  board.enter(1, operation(9));
  board.update(1, BoardPhase::kMoving, 4, 2);
  FlightLog log = make_flight_log(recorder, board, Error(ErrorCode::kTimeout, "rank 2 is \"late\""));
  log.group = "world";
  log.generation = 3;
  log.rank = 1;
  log.ranks = 3;
  log.host = "here";
  MemoryFiles files;
  write_flight_log(files, "run/log", log);
  const FlightLog again = read_flight_log(files, flight_path("run/log", "world", 1));
  EXPECT_EQ(again.group, "world");
  EXPECT_EQ(again.generation, 3U);
  EXPECT_EQ(again.code, to_string(ErrorCode::kTimeout));
  EXPECT_EQ(again.message, "rank 2 is \"late\"");
  EXPECT_EQ(again.newest_small, 8U);
  ASSERT_EQ(again.operations.size(), 1U);
  EXPECT_EQ(again.operations[0].state, "begun");
  EXPECT_NEAR(again.operations[0].begun_s - again.operations[0].queued_s, 1.0, 0.01);
  EXPECT_EQ(again.operations[0].agreed_s, 0);
  ASSERT_EQ(again.board.size(), 3U);
  EXPECT_EQ(again.board[1].line.phase, BoardPhase::kMoving);
  EXPECT_EQ(again.board[1].line.waits_for, 2);
  EXPECT_EQ(again.board[0].silent_s, -1);
}

TEST(FlightLog, NamesAFileThatIsNone) {
  MemoryFiles files;
  const auto refusal = [&](const std::string& text) {
    files.remove("f");
    files.append("f", text);
    try {
      read_flight_log(files, "f");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
      return error.message();
    }
    return std::string("was read");
  };
  EXPECT_THAT(refusal("{"), HasSubstr("f is no flight recorder's file"));
  EXPECT_THAT(refusal("{}"), HasSubstr("f is no flight recorder's file"));
  EXPECT_THAT(refusal(R"({"kind":"something"})"), HasSubstr("another kind"));
  EXPECT_THAT(refusal(R"({"kind":"convoy flight recorder","format":2})"), HasSubstr("format is 2"));
}

}  // namespace
}  // namespace convoy::observe

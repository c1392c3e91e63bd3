// Schedules for people: operations as lines, a schedule as a table or as a picture.
#pragma once

#include <string>
#include <string_view>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Returns the kind's name as tables and traces show it: "send", "receive", "reduce", "copy", "F", "B", "W", "R".
std::string_view to_string(OpKind kind);

/// Returns a chunk for people, for example "input 0 [0, 4096)"; scratch chunks show no range.
std::string to_string(const Chunk& chunk);

/// Returns an operation for people, for example "send output [0, 8) to rank 1" or "reduce output [0, 8) = (scratch 0 +
/// input 0 [0, 8)), final".
std::string to_string(const Operation& operation);

/// Returns the schedule for people: a line for each operation under its rank and round.
std::string describe(const Schedule& schedule);

/// Returns the schedule as a table, a row for each rank: rounds, messages, elements sent, peers, elements reduced and
/// copied, work memory; and a row of totals.
std::string describe_table(const Schedule& schedule);

/// Returns the schedule as a picture for a terminal: a row for each round, a column for each rank. ">2" is a message to
/// rank 2, "<1" one from rank 1, "+" a sum (with "!" when it is final), "=" a copy. Elements of the messages stand after
/// the row when all of the round are equal. With `width` 0 a row is as long as it gets; else columns are cut at it.
std::string describe_picture(const Schedule& schedule, int width = 0);

}  // namespace convoy::spec

// What a rank tells its launcher while it runs: one JSON object a line on the descriptor named by CONVOY_EVENTS_FD.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::elastic {

/// The kinds of event: "progress", "phase", "note", "error" and "summary" in the field `event`.
enum class RankEventKind { kProgress, kPhase, kNote, kError, kSummary };

/// One event. Which fields say something depends on the kind; fields that the rank left out keep their defaults.
struct RankEvent {
  /// What happened.
  RankEventKind kind = RankEventKind::kNote;
  /// Progress: the number of the step that was just finished.
  std::int64_t step = 0;
  /// Progress: how many steps the run will have; 0 when that is not known.
  std::int64_t steps = 0;
  /// Progress: the epoch of the step, counted from 0.
  std::int64_t epoch = 0;
  /// Progress: the loss of the step.
  double loss = std::numeric_limits<double>::quiet_NaN();
  /// Progress: samples a second over the last steps, all ranks together.
  double samples_per_s = 0.0;
  /// Phase: its name ("evaluation"). Note: the text. Error: the message.
  std::string text;
  /// Error: the name of the code ("Aborted").
  std::string code;
};

/// Returns the event that a line says, or nothing when the line is not an event.
std::optional<RankEvent> parse_rank_event(std::string_view line);

}  // namespace convoy::elastic

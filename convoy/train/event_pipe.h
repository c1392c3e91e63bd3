// The event pipe: what a rank tells the launcher that started it.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/base/error.h"

namespace convoy::train {

/// Writes events as JSON lines to the descriptor named by CONVOY_EVENTS_FD; without one, does nothing.
/// Threads:    one caller at a time
class EventPipe {
 public:
  EventPipe();
  /// Tells how far training is.
  void progress(std::int64_t step, std::int64_t steps, std::int64_t epoch, double loss, double samples_per_s);
  /// Tells what goes on now, for example "evaluation".
  void phase(const std::string& name);
  /// Tells people something.
  void note(const std::string& text);
  /// Tells why this rank ends.
  void error(ErrorCode code, const std::string& message);
  /// Tells that summary.json is there.
  void summary();

 private:
  void send(const std::string& line);
  int descriptor_ = -1;
};

}  // namespace convoy::train

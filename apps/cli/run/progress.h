// Shows a job's progress on standard error.
#pragma once

#include <cstdint>
#include <optional>

#include "convoy/elastic/launcher/rank_event.h"
#include "convoy/observe/progress_display.h"

namespace convoy::cli {

/// What progress is measured by.
struct ProgressFacts {
  /// Samples in one step.
  std::int64_t global_batch = 1;
  /// Epochs of the run; 0 when the steps decide.
  std::int64_t epochs = 0;
};

/// Shows progress and phases of rank 0 and notes of all ranks: a bar on a terminal, plain lines elsewhere.
/// Threads:    one
class Progress {
 public:
  /// Shows nothing at all unless `shown`.
  Progress(bool shown, const ProgressFacts& facts);
  ~Progress();
  /// Takes an event of a rank.
  void take(int rank, const elastic::RankEvent& event);

 private:
  void show_step(const elastic::RankEvent& event);

  const ProgressFacts facts_;
  std::optional<observe::ProgressDisplay> display_;
  observe::ProgressState state_;
};

}  // namespace convoy::cli

// Events of ranks turned into a progress display.
#include "apps/cli/run/progress.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

namespace convoy::cli {
namespace {

observe::ProgressOptions display_options() {
  observe::ProgressOptions options;
  options.width = observe::terminal_width(stderr);
  return options;
}

std::string epoch_label(std::int64_t epoch, std::int64_t epochs) {
  return epochs > 0 ? fmt::format("epoch {} of {}", epoch + 1, epochs) : fmt::format("epoch {}", epoch + 1);
}

}  // namespace

Progress::Progress(bool shown, const ProgressFacts& facts) : facts_(facts) {
  if (shown) display_.emplace(stderr, display_options());
}

Progress::~Progress() {
  if (display_) display_->finish();
}

void Progress::take(int rank, const elastic::RankEvent& event) {
  if (!display_) return;
  switch (event.kind) {
    case elastic::RankEventKind::kProgress:
      if (rank == 0) show_step(event);
      break;
    case elastic::RankEventKind::kPhase:
      if (rank != 0) break;
      state_.label = event.text;
      display_->update(state_);
      break;
    case elastic::RankEventKind::kNote:
      display_->note(rank == 0 ? event.text : fmt::format("[rank {}] {}", rank, event.text));
      break;
    case elastic::RankEventKind::kError:  // said once, when it is known which rank's error counts
    case elastic::RankEventKind::kSummary: break;
  }
}

void Progress::show_step(const elastic::RankEvent& event) {
  state_.label = epoch_label(event.epoch, facts_.epochs);
  state_.step = event.step;
  state_.steps = event.steps;
  state_.samples = event.step * facts_.global_batch;
  state_.loss = std::isfinite(event.loss) ? std::optional<double>(event.loss) : std::nullopt;
  display_->update(state_);
}

}  // namespace convoy::cli

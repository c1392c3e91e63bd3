#include "convoy/observe/progress_display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "convoy/base/text.h"

namespace convoy::observe {
namespace {

constexpr int kShortestBar = 10;
constexpr int kLongestBar = 40;

double share_done(const ProgressState& state) {
  if (state.steps <= 0) return 0.0;
  return std::clamp(static_cast<double>(state.step) / static_cast<double>(state.steps), 0.0, 1.0);
}

// The parts to the right of the bar, the most important first.
std::vector<std::string> facts(const ProgressState& state) {
  std::vector<std::string> parts;
  if (state.loss) parts.push_back(fmt::format("loss {:.4f}", *state.loss));
  if (state.remaining) parts.push_back(format_duration(*state.remaining) + " left");
  if (state.samples_per_s) parts.push_back(fmt::format("{:.0f} samples/s", *state.samples_per_s));
  return parts;
}

std::string bar(double share, int columns) {
  const int full = static_cast<int>(share * columns);
  return fmt::format("[{}{}]", std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(columns - full), '.'));
}

}  // namespace

std::string render_line(const ProgressState& state) {
  std::string text = fmt::format("{}{}step {}", state.label, state.label.empty() ? "" : ": ", state.step);
  if (state.steps > 0) text += fmt::format(" of {} ({:.0f}%)", state.steps, 100.0 * share_done(state));
  if (state.samples_per_s) text += fmt::format(", {:.0f} samples/s", *state.samples_per_s);
  if (state.loss) text += fmt::format(", loss {:.4f}", *state.loss);
  if (state.remaining) text += fmt::format(", {} left", format_duration(*state.remaining));
  return text;
}

std::string render_bar(const ProgressState& state, int width) {
  const auto columns = static_cast<std::size_t>(std::max(0, width));
  std::string left = state.label.empty() ? "" : state.label + " ";
  std::string right;
  if (state.steps > 0) {
    right = fmt::format(" {:3.0f}% {}/{}", 100.0 * share_done(state), state.step, state.steps);
  } else {
    right = fmt::format(" step {}", state.step);
  }
  const std::size_t shortest_bar = state.steps > 0 ? kShortestBar + 2 : 0;
  for (const std::string& fact : facts(state)) {
    if (left.size() + shortest_bar + right.size() + 2 + fact.size() > columns) break;
    right += "  " + fact;
  }
  const std::size_t taken = left.size() + right.size();
  if (state.steps > 0 && taken + shortest_bar <= columns) {
    left += bar(share_done(state), std::min(kLongestBar, static_cast<int>(columns - taken) - 2));
  }
  return (left + right).substr(0, columns);
}

void RateMeter::note(TimePoint when, double done) {
  notes_.emplace_back(when, done);
  // One note older than the window stays, so that slow steps have a rate too.
  while (notes_.size() > 2 && when - notes_[1].first >= window_) notes_.pop_front();
}

std::optional<double> RateMeter::per_second() const {
  if (notes_.size() < 2) return std::nullopt;
  const double seconds = to_seconds(notes_.back().first - notes_.front().first);
  if (seconds <= 0.0) return std::nullopt;
  return (notes_.back().second - notes_.front().second) / seconds;
}

int terminal_width(std::FILE* stream) {
  const int descriptor = fileno(stream);
  if (descriptor < 0 || isatty(descriptor) == 0) return 0;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

ProgressDisplay::ProgressDisplay(std::FILE* stream, const ProgressOptions& options, const Clock& clock)
    : stream_(stream), options_(options), clock_(clock), samples_(options.rate_window), steps_(options.rate_window) {}

ProgressDisplay::~ProgressDisplay() {
  if (bar_open_) std::fputc('\n', stream_);
  std::fflush(stream_);
}

void ProgressDisplay::update(ProgressState state) {
  const TimePoint now = clock_.now();
  samples_.note(now, static_cast<double>(state.samples));
  steps_.note(now, static_cast<double>(state.step));
  state.samples_per_s = samples_.per_second();
  const auto rate = steps_.per_second();
  if (rate && *rate > 0.0 && state.steps > 0) {
    const double seconds = static_cast<double>(std::max<std::int64_t>(0, state.steps - state.step)) / *rate;
    state.remaining = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  const bool time = is_time(state);
  state_ = std::move(state);
  if (time) show();
}

bool ProgressDisplay::is_time(const ProgressState& state) const {
  if (!last_shown_) return true;
  const Duration passed = clock_.now() - *last_shown_;
  if (options_.width > 0) return passed >= options_.redraw_every;
  const double steps = static_cast<double>(state.step - last_step_);
  return passed >= options_.line_every ||
         (state.steps > 0 && steps >= options_.line_share * static_cast<double>(state.steps));
}

void ProgressDisplay::show() {
  if (options_.width > 0) {
    // One column stays free: a terminal may break a line that fills it.
    const std::string text = render_bar(state_, options_.width - 1);
    std::fputs(("\r" + text + "\x1b[K").c_str(), stream_);
    bar_open_ = true;
  } else {
    std::fputs((render_line(state_) + "\n").c_str(), stream_);
  }
  std::fflush(stream_);
  last_shown_ = clock_.now();
  last_step_ = state_.step;
}

void ProgressDisplay::clear_bar() {
  if (!bar_open_) return;
  std::fputs("\r\x1b[K", stream_);
  bar_open_ = false;
}

void ProgressDisplay::note(const std::string& text) {
  const bool again = bar_open_;
  clear_bar();
  std::fputs((text + "\n").c_str(), stream_);
  if (again) show();
  std::fflush(stream_);
}

void ProgressDisplay::finish() {
  if (!last_shown_) return;
  if (options_.width > 0 || state_.step != last_step_) show();
  if (bar_open_) std::fputc('\n', stream_);
  bar_open_ = false;
  std::fflush(stream_);
}

}  // namespace convoy::observe

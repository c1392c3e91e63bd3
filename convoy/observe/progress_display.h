// Progress for people: a bar that redraws itself on a terminal, plain lines now and then elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "convoy/base/clock.h"

namespace convoy::observe {

/// How far something is.
struct ProgressState {
  /// What goes on, for example "epoch 2 of 5".
  std::string label;
  /// Steps done.
  std::int64_t step = 0;
  /// All steps; 0 when unknown.
  std::int64_t steps = 0;
  /// Samples done so far.
  std::int64_t samples = 0;
  /// The newest loss, if there is one.
  std::optional<double> loss;
  /// Samples per second; nothing before it can be told.
  std::optional<double> samples_per_s;
  /// The time that is left; nothing before it can be told.
  std::optional<Duration> remaining;
};

/// Returns the progress as text without a bar: "epoch 2 of 5: step 30 of 100 (30%), 1234 samples/s, loss 0.4321, 1 min
/// 05 s left".
std::string render_line(const ProgressState& state);

/// Returns the progress with a bar, in at most `width` columns: the bar shrinks first, then the parts on the right go.
std::string render_bar(const ProgressState& state, int width);

/// Tells the recent rate of something that grows.
class RateMeter {
 public:
  /// Looks back over `window`.
  explicit RateMeter(Duration window) : window_(window) {}
  /// Notes how much is done at a moment.
  void note(TimePoint when, double done);
  /// Returns the growth per second over the window; nothing before two moments are known.
  std::optional<double> per_second() const;

 private:
  Duration window_;
  std::deque<std::pair<TimePoint, double>> notes_;
};

/// Returns the columns of the terminal behind a stream, or 0 when there is none.
int terminal_width(std::FILE* stream);

/// How often a display writes.
struct ProgressOptions {
  /// Columns of the terminal; 0 writes plain lines.
  int width = 0;
  /// The shortest time between two redraws of the bar: less is smoother and costs more writes.
  Duration redraw_every = std::chrono::milliseconds(100);
  /// A plain line comes after this time, or after `line_share`, whichever comes first.
  Duration line_every = std::chrono::seconds(5);
  /// A plain line comes after this share of all steps.
  double line_share = 0.1;
  /// The rate is that of this much time: less reacts faster and jumps more.
  Duration rate_window = std::chrono::seconds(10);
};

/// Shows progress on a stream, by custom standard error.
/// Ownership:  borrows the stream and the clock
/// Threads:    one caller at a time
class ProgressDisplay {
 public:
  /// Takes the options, whose width decides between bar and lines (see terminal_width).
  ProgressDisplay(std::FILE* stream, const ProgressOptions& options, const Clock& clock = system_clock());
  /// Ends the bar's line.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Shows progress if it is time; fills in rate and remaining time.
  void update(ProgressState state);
  /// Writes a line of its own; the bar goes on under it.
  void note(const std::string& text);
  /// Shows the newest state in any case, and ends the bar's line.
  void finish();

 private:
  bool is_time(const ProgressState& state) const;
  void show();
  void clear_bar();

  std::FILE* stream_;
  const ProgressOptions options_;
  const Clock& clock_;
  RateMeter samples_;
  RateMeter steps_;
  ProgressState state_;
  std::optional<TimePoint> last_shown_;
  std::int64_t last_step_ = 0;
  bool bar_open_ = false;
};

}  // namespace convoy::observe

// The bar fits its width; plain lines come when they should; the remaining time follows the recent rate.
#include "convoy/observe/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace convoy::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;

ProgressState full_state() {
  ProgressState state;
  state.label = "epoch 2 of 5";
  state.step = 30;
  state.steps = 100;
  state.loss = 0.43214;
  state.samples_per_s = 1234.4;
  state.remaining = seconds(65);
  return state;
}

TEST(RenderBar, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(render_bar(full_state(), 120),
            "epoch 2 of 5 [############............................]  30% 30/100  loss 0.4321  1 min 05 s left  1234 "
            "samples/s");
}

TEST(RenderBar, NeverExceedsItsWidthAndDropsTheRightmostFirst) {
  for (int width = 0; width <= 130; ++width) {
    const std::string text = render_bar(full_state(), width);
    EXPECT_LE(text.size(), static_cast<std::size_t>(width));
    if (width >= 37) {
      EXPECT_THAT(text, HasSubstr("###.")) << width;
    }
  }
  EXPECT_EQ(render_bar(full_state(), 50), "epoch 2 of 5 [###.......]  30% 30/100  loss 0.4321");
  EXPECT_EQ(render_bar(full_state(), 30), "epoch 2 of 5   30% 30/100");
}

TEST(RenderBar, IsFullAtTheEndAndEmptyAtTheStart) {
  ProgressState state;
  state.steps = 7;
  EXPECT_THAT(render_bar(state, 30), HasSubstr("[....."));
  state.step = 7;
  EXPECT_THAT(render_bar(state, 30), HasSubstr("#####]"));
  state.step = 9;  // more than was planned
  EXPECT_THAT(render_bar(state, 30), HasSubstr("100% 9/7"));
}

TEST(RenderBar, HasNoBarWhenTheEndIsUnknown) {
  ProgressState state;
  state.step = 12;
  state.loss = 1.0;
  EXPECT_EQ(render_bar(state, 60), " step 12  loss 1.0000");
}

TEST(RenderLine, ReadsLikeASentence) {
  EXPECT_EQ(render_line(full_state()),
            "epoch 2 of 5: step 30 of 100 (30%), 1234 samples/s, loss 0.4321, 1 min 05 s left");
  ProgressState state;
  state.step = 3;
  EXPECT_EQ(render_line(state), "step 3");
}

TEST(RateMeter, TellsTheRecentRate) {
  RateMeter meter(seconds(10));
  const TimePoint start{};
  EXPECT_EQ(meter.per_second(), std::nullopt);
  meter.note(start, 0);
  EXPECT_EQ(meter.per_second(), std::nullopt);
  meter.note(start, 5);
  EXPECT_EQ(meter.per_second(), std::nullopt);  // no time has passed
  for (int i = 1; i <= 100; ++i) meter.note(start + seconds(i), i <= 50 ? i : 50 + 3 * (i - 50));
  EXPECT_DOUBLE_EQ(*meter.per_second(), 3.0);
  meter.note(start + seconds(1000), 200 + 90);
  EXPECT_NEAR(*meter.per_second(), 0.1, 1e-3);  // one slow step, longer than the window
}

// What a display writes to a stream.
class Screen {
 public:
  Screen() : stream_(std::tmpfile()) {}
  ~Screen() { std::fclose(stream_); }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::string all;
    std::rewind(stream_);
    for (int c = std::fgetc(stream_); c != EOF; c = std::fgetc(stream_)) all.push_back(static_cast<char>(c));
    return all;
  }

 private:
  std::FILE* stream_;
};

std::int64_t count_of(const std::string& text, const std::string& piece) {
  std::int64_t times = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++times;
  return times;
}

void walk(ProgressDisplay& display, ManualClock& clock, int steps, Duration each) {
  for (int step = 1; step <= steps; ++step) {
    clock.advance(each);
    ProgressState state;
    state.step = step;
    state.steps = steps;
    state.samples = 64 * step;
    display.update(state);
  }
  display.finish();
}

TEST(ProgressDisplay, WritesALineForEachTenthElsewhere) {
  ManualClock clock;
  Screen screen;
  ProgressDisplay display(screen.stream(), {}, clock);
  walk(display, clock, 1000, milliseconds(10));
  const std::string text = screen.text();
  EXPECT_EQ(count_of(text, "\n"), 11);
  EXPECT_EQ(count_of(text, "\r"), 0);
  EXPECT_THAT(text, HasSubstr("step 501 of 1000 (50%), 6400 samples/s, 5.0 s left\n"));
  EXPECT_THAT(text, EndsWith("step 1000 of 1000 (100%), 6400 samples/s, 0.0 us left\n"));
}

TEST(ProgressDisplay, WritesALineAfterSomeSecondsElsewhere) {
  ManualClock clock;
  Screen screen;
  ProgressDisplay display(screen.stream(), {}, clock);
  walk(display, clock, 100, seconds(1));  // a tenth takes longer than 5 s
  EXPECT_EQ(count_of(screen.text(), "\n"), 21);
}

TEST(ProgressDisplay, RedrawsOneLineOnATerminal) {
  ManualClock clock;
  Screen screen;
  ProgressOptions options;
  options.width = 60;
  {
    ProgressDisplay display(screen.stream(), options, clock);
    walk(display, clock, 100, milliseconds(10));
  }
  const std::string text = screen.text();
  EXPECT_EQ(count_of(text, "\n"), 1);
  EXPECT_EQ(count_of(text, "\r"), 11);  // each tenth of a second, and the end
  EXPECT_THAT(text, HasSubstr("100% 100/100"));
  EXPECT_THAT(text, EndsWith("\n"));
}

TEST(ProgressDisplay, NotesStandAboveTheBar) {
  ManualClock clock;
  Screen screen;
  ProgressOptions options;
  options.width = 40;
  ProgressDisplay display(screen.stream(), options, clock);
  ProgressState state;
  state.step = 1;
  state.steps = 2;
  display.update(state);
  display.note("accuracy 0.9");
  EXPECT_THAT(screen.text(), HasSubstr("\r\x1b[Kaccuracy 0.9\n\r"));
}

TEST(TerminalWidth, IsZeroForAFile) {
  Screen screen;
  EXPECT_EQ(terminal_width(screen.stream()), 0);
}

}  // namespace
}  // namespace convoy::observe

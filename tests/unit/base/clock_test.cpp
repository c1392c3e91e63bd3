// Time: the real clock moves on, the hand-driven one only when told to, and a deadline ends exactly at its moment.
#include "convoy/base/clock.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, NeverGoesBackAndSleepsAtLeastAsLongAsAsked) {
  Clock& clock = system_clock();
  const TimePoint before = clock.now();
  clock.sleep_for(3ms);
  EXPECT_GE(clock.now() - before, 3ms);
}

TEST(SystemClock, IsOneForTheWholeProcess) { EXPECT_EQ(&system_clock(), &system_clock()); }

TEST(ManualClock, StandsStillUntilItIsAdvanced) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(5ms);
  EXPECT_EQ(clock.now() - start, 5ms);
}

TEST(ManualClock, SleepsByMovingOn) {
  ManualClock clock;
  const TimePoint start = clock.now();
  clock.sleep_for(1h);
  EXPECT_EQ(clock.now() - start, 1h);
}

TEST(Deadline, ExpiresAtItsMomentAndNotBefore) {
  ManualClock clock;
  const Deadline deadline(clock, 10ms);
  EXPECT_FALSE(deadline.expired());
  clock.advance(10ms - 1ns);
  EXPECT_FALSE(deadline.expired());
  EXPECT_EQ(deadline.remaining(), 1ns);
  clock.advance(1ns);
  EXPECT_TRUE(deadline.expired());
}

TEST(Deadline, HasNothingLeftOnceItIsOver) {
  ManualClock clock;
  const Deadline deadline(clock, 10ms);
  clock.advance(1s);
  EXPECT_EQ(deadline.remaining(), 0ns);
  EXPECT_EQ(deadline.limit(), 10ms);
}

TEST(Deadline, OfNoLengthIsOverAtOnce) {
  ManualClock clock;
  EXPECT_TRUE(Deadline(clock, 0ns).expired());
  EXPECT_TRUE(Deadline(clock, -1s).expired());
  EXPECT_EQ(Deadline(clock, -1s).remaining(), 0ns);
}

TEST(Durations, AreConvertedWithTheirFractions) {
  EXPECT_DOUBLE_EQ(to_ms(1500us), 1.5);
  EXPECT_DOUBLE_EQ(to_seconds(-250ms), -0.25);
}

TEST(Deadline, OfAHugeLimitIsNotOver) {
  const Deadline deadline(system_clock(), Duration::max());
  EXPECT_FALSE(deadline.expired());
  EXPECT_GT(deadline.remaining(), std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace convoy

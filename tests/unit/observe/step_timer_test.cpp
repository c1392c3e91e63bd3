// The step's time is divided without remainder, whatever is nested in what.
#include "convoy/observe/step_timer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/observe/quantile.h"

namespace convoy::observe {
namespace {

using std::chrono::milliseconds;

Duration exclusive_sum(const StepTimes& times) {
  Duration sum{};
  for (const Part part : kAllParts) {
    if (is_exclusive(part)) sum += times.part(part);
  }
  return sum;
}

TEST(StepTimer, OtherIsWhatIsLeft) {
  ManualClock clock;
  StepTimer timer(clock);
  {
    const auto span = timer.measure(Part::kForward);
    clock.advance(milliseconds(5));
  }
  clock.advance(milliseconds(2));
  {
    const auto span = timer.measure(Part::kBackward);
    clock.advance(milliseconds(11));
  }
  const StepTimes times = timer.end_step();
  EXPECT_EQ(times.total, milliseconds(18));
  EXPECT_EQ(times.part(Part::kForward), milliseconds(5));
  EXPECT_EQ(times.part(Part::kBackward), milliseconds(11));
  EXPECT_EQ(times.part(Part::kOther), milliseconds(2));
  EXPECT_EQ(exclusive_sum(times), times.total);
}

TEST(StepTimer, AnInnerSpanTakesItsTimeFromTheOuterOne) {
  ManualClock clock;
  StepTimer timer(clock);
  {
    const auto backward = timer.measure(Part::kBackward);
    clock.advance(milliseconds(3));
    {
      const auto exposed = timer.measure(Part::kCommExposed);
      clock.advance(milliseconds(7));
      const auto slowest = timer.measure(Part::kWaitSlowest);
      clock.advance(milliseconds(1));
    }
    clock.advance(milliseconds(4));
  }
  const StepTimes times = timer.end_step();
  EXPECT_EQ(times.part(Part::kBackward), milliseconds(7));
  EXPECT_EQ(times.part(Part::kCommExposed), milliseconds(8));
  EXPECT_EQ(times.part(Part::kWaitSlowest), milliseconds(1));
  EXPECT_EQ(times.part(Part::kOther), Duration(0));
  EXPECT_EQ(exclusive_sum(times), times.total);
}

TEST(StepTimer, PartsBesideTheStepAreNotTakenFromIt) {
  ManualClock clock;
  StepTimer timer(clock);
  clock.advance(milliseconds(10));
  std::vector<std::jthread> loaders;
  for (int i = 0; i < 4; ++i) {
    loaders.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) timer.add(Part::kInputPrepare, milliseconds(1));
    });
  }
  loaders.clear();
  timer.add(Part::kComm, milliseconds(9));
  const StepTimes times = timer.end_step();
  EXPECT_EQ(times.part(Part::kInputPrepare), milliseconds(4000));
  EXPECT_EQ(times.part(Part::kComm), milliseconds(9));
  EXPECT_EQ(times.part(Part::kOther), milliseconds(10));
}

TEST(StepTimer, BeginStepForgetsWhatLiesBetweenSteps) {
  ManualClock clock;
  StepTimer timer(clock);
  (void)timer.end_step();
  {
    const auto evaluation = timer.measure(Part::kForward);
    clock.advance(milliseconds(500));
  }
  timer.add(Part::kInputPrepare, milliseconds(3));
  timer.begin_step();
  clock.advance(milliseconds(1));
  const StepTimes times = timer.end_step();
  EXPECT_EQ(times.total, milliseconds(1));
  EXPECT_EQ(times.part(Part::kForward), Duration(0));
  EXPECT_EQ(times.part(Part::kInputPrepare), milliseconds(3));
}

TEST(StepTimer, RefusesToEndAStepInsideASpan) {
  ManualClock clock;
  StepTimer timer(clock);
  const auto span = timer.measure(Part::kForward);
  EXPECT_THROW(timer.end_step(), Error);
}

TEST(StepTimer, EveryPartHasAName) {
  for (const Part part : kAllParts) EXPECT_NE(to_string(part), "unknown");
  EXPECT_EQ(to_string(Part::kCommExposed), "comm_exposed");
}

StepTimes step_of(int total_ms, int forward_ms) {
  StepTimes times;
  times.total = milliseconds(total_ms);
  times.parts[static_cast<std::size_t>(Part::kForward)] = milliseconds(forward_ms);
  return times;
}

TEST(StepStatistics, LeavesOutWarmUp) {
  StepStatistics statistics(2);
  EXPECT_EQ(statistics.summary().steps, 0);
  EXPECT_EQ(statistics.summary().median_ms, 0.0);
  statistics.add(step_of(9000, 9000));
  statistics.add(step_of(8000, 8000));
  for (const int total : {14, 10, 11, 13, 12}) statistics.add(step_of(total, total / 2));
  const StepSummary summary = statistics.summary();
  EXPECT_EQ(statistics.seen(), 7);
  EXPECT_EQ(summary.steps, 5);
  EXPECT_DOUBLE_EQ(summary.median_ms, 12.0);
  EXPECT_DOUBLE_EQ(summary.p95_ms, 13.8);
  EXPECT_DOUBLE_EQ(summary.parts_ms[static_cast<std::size_t>(Part::kForward)], 6.0);
}

TEST(Quantile, IsLinearBetweenNeighbours) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.0), 1.0);
  EXPECT_DOUBLE_EQ(quantile(values, 1.0), 4.0);
  EXPECT_DOUBLE_EQ(p95(values), 3.85);
  EXPECT_DOUBLE_EQ(p95(std::vector<double>{7.0}), 7.0);
  std::vector<double> hundred;
  for (int i = 0; i <= 100; ++i) hundred.push_back(i);
  EXPECT_DOUBLE_EQ(p95(hundred), 95.0);
}

TEST(Quantile, RefusesWhatHasNoOrder) {
  EXPECT_THROW(median(std::vector<double>{}), Error);
  EXPECT_THROW(median(std::vector<double>{1.0, std::nan("")}), Error);
  EXPECT_THROW(quantile(std::vector<double>{1.0}, 1.5), Error);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{1.0, 2.0, std::numeric_limits<double>::infinity()}), 2.0);
}

}  // namespace
}  // namespace convoy::observe

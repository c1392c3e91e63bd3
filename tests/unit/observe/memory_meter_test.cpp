// The peak is a moment: its categories add up to its total, and its phase is the one in which it was reached.
#include "convoy/observe/memory_meter.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace convoy::observe {
namespace {

std::int64_t of(const MemoryBytes& bytes, MemoryCategory category) { return bytes[static_cast<std::size_t>(category)]; }

TEST(MemoryMeter, KeepsTheCategoriesOfTheWorstMoment) {
  MemoryMeter meter;
  meter.add(MemoryCategory::kParameters, 100);
  meter.enter(MemoryPhase::kForward);
  meter.add(MemoryCategory::kActivations, 70);
  meter.enter(MemoryPhase::kBackward);
  meter.add(MemoryCategory::kGradients, 20);  // 190: the peak
  meter.remove(MemoryCategory::kActivations, 70);
  meter.add(MemoryCategory::kGradients, 69);  // 189
  meter.enter(MemoryPhase::kUpdate);
  const MemoryPeak peak = meter.peak();
  EXPECT_EQ(peak.total, 190);
  EXPECT_EQ(peak.phase, MemoryPhase::kBackward);
  EXPECT_EQ(of(peak.categories, MemoryCategory::kParameters), 100);
  EXPECT_EQ(of(peak.categories, MemoryCategory::kActivations), 70);
  EXPECT_EQ(of(peak.categories, MemoryCategory::kGradients), 20);
  EXPECT_EQ(std::accumulate(peak.categories.begin(), peak.categories.end(), std::int64_t{0}), peak.total);
  EXPECT_EQ(of(meter.current(), MemoryCategory::kGradients), 89);
}

TEST(MemoryMeter, TakesWholesAndShowsWhatWasRemovedTooOften) {
  MemoryMeter meter;
  meter.set(MemoryCategory::kOptimizer, 50);
  meter.set(MemoryCategory::kOptimizer, 30);
  EXPECT_EQ(meter.peak().total, 50);
  meter.remove(MemoryCategory::kBatch, 5);
  EXPECT_EQ(of(meter.current(), MemoryCategory::kBatch), -5);
  EXPECT_EQ(meter.peak().phase, MemoryPhase::kInitialisation);
}

TEST(MemoryMeter, CountsFromManyThreads) {
  MemoryMeter meter;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&meter] {
        for (int k = 0; k < 1000; ++k) {
          meter.add(MemoryCategory::kBatch, 3);
          meter.remove(MemoryCategory::kBatch, 2);
        }
      });
    }
  }
  EXPECT_EQ(of(meter.current(), MemoryCategory::kBatch), 4000);
  EXPECT_GE(meter.peak().total, 4000);
  EXPECT_LE(meter.peak().total, 4000 + 4 * 3);
}

TEST(MemoryMeter, NamesAreThoseOfTheSummary) {
  EXPECT_EQ(to_string(MemoryCategory::kGradientPartials), "gradient_partials");
  EXPECT_EQ(to_string(MemoryCategory::kCommunicationBuffers), "communication_buffers");
  EXPECT_EQ(to_string(MemoryPhase::kInitialisation), "initialisation");
}

}  // namespace
}  // namespace convoy::observe

// The peak is a moment: its categories add up to its total, and its phase is the one in which it was reached.
#include "convoy/observe/memory_meter.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "convoy/observe/memory_report.h"

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

TEST(MemoryMeter, ShowsWhatWasRemovedTooOften) {
  MemoryMeter meter;
  meter.add(MemoryCategory::kOptimizer, 50);
  meter.add(MemoryCategory::kOptimizer, -20);
  EXPECT_EQ(meter.peak().total, 50);
  meter.remove(MemoryCategory::kBatch, 5);
  EXPECT_EQ(of(meter.current(), MemoryCategory::kBatch), -5);
  EXPECT_EQ(meter.peak().phase, MemoryPhase::kInitialisation);
}

TEST(MemoryMeter, KnowsThePeakOfEachPhase) {
  MemoryMeter meter;
  meter.add(MemoryCategory::kParameters, 10);
  meter.enter(MemoryPhase::kForward);
  meter.add(MemoryCategory::kActivations, 5);
  meter.enter(MemoryPhase::kBackward);  // 15 are in use as it begins
  meter.remove(MemoryCategory::kActivations, 5);
  meter.enter(MemoryPhase::kUpdate);
  EXPECT_EQ(meter.peak(MemoryPhase::kInitialisation).total, 10);
  EXPECT_EQ(meter.peak(MemoryPhase::kForward).total, 15);
  EXPECT_EQ(meter.peak(MemoryPhase::kBackward).total, 15);
  EXPECT_EQ(meter.peak(MemoryPhase::kUpdate).total, 10);
  EXPECT_EQ(meter.peak().phase, MemoryPhase::kForward) << "the first of equals";
}

TEST(MemoryMeter, MovesBytesBetweenCategories) {
  MemoryMeter meter;
  meter.add(MemoryCategory::kActivations, 30);
  meter.move(MemoryCategory::kActivations, MemoryCategory::kGradientPartials, 20);
  EXPECT_EQ(of(meter.current(), MemoryCategory::kActivations), 10);
  EXPECT_EQ(of(meter.current(), MemoryCategory::kGradientPartials), 20);
  EXPECT_EQ(meter.total(), 30);
  meter.remove(MemoryCategory::kGradientPartials, 20);
  EXPECT_EQ(of(meter.highest(), MemoryCategory::kGradientPartials), 20) << "though never at a new peak";
  EXPECT_EQ(of(meter.peak().categories, MemoryCategory::kGradientPartials), 0);
}

TEST(MemoryMeter, SearchesAnewFromWhatIsInUse) {
  MemoryMeter meter;
  meter.add(MemoryCategory::kBatch, 100);
  meter.remove(MemoryCategory::kBatch, 60);
  meter.reset_peaks();
  EXPECT_EQ(meter.peak().total, 40);
  EXPECT_EQ(of(meter.highest(), MemoryCategory::kBatch), 40);
  meter.add(MemoryCategory::kBatch, 1);
  EXPECT_EQ(meter.peak().total, 41);
  EXPECT_EQ(of(meter.peak().categories, MemoryCategory::kBatch), 41);
}

TEST(CountedMemory, CountsWhileItLivesWhoeverHoldsIt) {
  const auto batch = [] { return of(process_memory().current(), MemoryCategory::kBatch); };
  const std::int64_t before = batch();
  {
    CountedMemory first(MemoryCategory::kBatch, 70);
    CountedMemory second = std::move(first);
    second.resize(50);
    EXPECT_EQ(batch() - before, 50);
    CountedMemory third(MemoryCategory::kBatch, 5);
    third = std::move(second);
    EXPECT_EQ(batch() - before, 50) << "what the third counted has ended";
  }
  EXPECT_EQ(batch(), before);
}

TEST(MemoryReport, WritesPeakPhasesHighestAndResidentSet) {
  MemoryFiles files;
  const std::string status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
  files.write("/status", std::vector<std::string_view>{status});
  MemoryMeter meter;
  meter.enter(MemoryPhase::kUpdate);
  meter.add(MemoryCategory::kOptimizer, 7);
  const auto json = memory_json(meter, read_resident_memory(files, "/status"));
  EXPECT_EQ(json["optimizer"], 7);
  EXPECT_EQ(json["total"], 7);
  EXPECT_EQ(json["peak_phase"], "update");
  EXPECT_EQ(json["by_phase"]["forward"]["total"], 0);
  EXPECT_EQ(json["by_phase"]["update"]["optimizer"], 7);
  EXPECT_EQ(json["highest"]["optimizer"], 7);
  EXPECT_EQ(json["resident"]["now"], 1024 * 1024);
  EXPECT_EQ(json["resident"]["peak"], 2 * 1024 * 1024);
  EXPECT_TRUE(memory_json(meter, read_resident_memory(files, "/none"))["resident"].is_null());
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

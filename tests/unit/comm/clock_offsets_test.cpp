// Clocks that are known to differ are found to differ by that much, within the uncertainty that is stated.
#include "convoy/comm/clock_offsets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "convoy/base/error.h"
#include "tests/support/groups.h"

namespace convoy::comm {
namespace {

using namespace std::chrono_literals;

// The real clock, set wrong on purpose.
class ShiftedClock final : public Clock {
 public:
  explicit ShiftedClock(Duration shift) : shift_(shift) {}
  TimePoint now() const override { return system_clock().now() + shift_; }
  void sleep_for(Duration duration) override { system_clock().sleep_for(duration); }

 private:
  Duration shift_;
};

// What each rank found, with clocks that run ahead by these shifts.
std::vector<std::vector<ClockOffset>> measure(const std::vector<Duration>& shifts, const spec::HostOfRank& hosts,
                                              bool every_rank) {
  std::vector<std::vector<ClockOffset>> found(shifts.size());
  testing::with_groups(
      static_cast<int>(shifts.size()),
      [&](Group& group) {
        const auto rank = static_cast<std::size_t>(group.rank());
        found[rank] = measure_clock_offsets(group, ShiftedClock(shifts[rank]), {20, every_rank});
      },
      hosts);
  return found;
}

TEST(ClockOffsets, FindHowFarClocksAreApart) {
  const std::vector<Duration> shifts = {0ms, 250ms, -90ms};
  const auto found = measure(shifts, {}, true);
  for (std::size_t rank = 0; rank < shifts.size(); ++rank) {
    for (std::size_t of = 0; of < shifts.size(); ++of) {
      const ClockOffset& one = found[rank][of];
      EXPECT_LE(std::abs((one.offset + shifts[of]).count()), one.uncertainty.count()) << "rank " << of;
      EXPECT_EQ(one.offset, found[0][of].offset) << "all ranks know the same";
      EXPECT_EQ(one.uncertainty, found[0][of].uncertainty);
    }
    EXPECT_LT(found[rank][1].uncertainty, 50ms) << "a useless answer is no answer";
    EXPECT_GT(found[rank][1].uncertainty, 0ms);
  }
}

TEST(ClockOffsets, RankZeroMayBeTheOneWhoseClockDiffers) {
  const auto found = measure({1000ms, 0ms}, {}, true);
  EXPECT_LE(std::abs((found[1][1].offset - 1000ms).count()), found[1][1].uncertainty.count());
}

TEST(ClockOffsets, RanksOfAHostShareItsClock) {
  // Ranks 1 and 3 are on host 1; rank 3's own shift is not looked at, since hosts have one clock.
  const auto found = measure({0ms, 40ms, 0ms, 40ms}, {0, 1, 0, 1}, false);
  EXPECT_EQ(found[0][2].offset, 0ms);
  EXPECT_EQ(found[0][2].uncertainty, 0ms);
  EXPECT_LE(std::abs((found[0][1].offset + 40ms).count()), found[0][1].uncertainty.count());
  EXPECT_EQ(found[0][3].offset, found[0][1].offset);
}

TEST(ClockOffsets, OnOneHostNothingIsAsked) {
  std::uint64_t sent = 1;
  testing::with_groups(1, [&](Group& group) {
    EXPECT_EQ(measure_clock_offsets(group).size(), 1u);
    sent = group.sent_bytes();
  });
  EXPECT_EQ(sent, 0u);
  const auto found = measure({0ms, 70ms}, {}, false);
  for (const ClockOffset& one : found[1]) EXPECT_EQ(one.offset, 0ms);
}

TEST(ClockOffsets, NoRoundsAreRefused) {
  testing::with_groups(1, [](Group& group) {
    EXPECT_THROW(measure_clock_offsets(group, system_clock(), {0, true}), Error);
  });
}

}  // namespace
}  // namespace convoy::comm

// A group builds the schedules of every step once, however many others are asked for in between.
#include <gtest/gtest.h>

#include <string>

#include "convoy/comm/group.h"
#include "convoy/spec/collectives/barrier.h"
#include "tests/support/groups.h"

namespace convoy::comm {
namespace {

TEST(RememberedSchedules, KeepWhatIsAskedForAgainAndAgain) {
  testing::with_groups(1, [](Group& group) {
    int built = 0;
    const auto ask = [&](const std::string& key) {
      const int before = built;
      (void)group.schedule(key, [&] {
        ++built;
        return spec::dissemination_barrier(1);
      });
      return built > before;
    };
    EXPECT_TRUE(ask("every step"));
    for (int step = 0; step < 200; ++step) {
      EXPECT_TRUE(ask("of step " + std::to_string(step)));
      EXPECT_FALSE(ask("every step")) << "step " << step;
    }
    EXPECT_TRUE(ask("of step 0")) << "there is no room for everything";
  });
}

}  // namespace
}  // namespace convoy::comm

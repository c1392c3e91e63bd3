// Schedules that are left to a library: where they run, and where they are refused.
#include "convoy/comm/native_schedule.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/comm/in_process_transport.h"
#include "tests/support/ranks.h"

namespace convoy::comm {
namespace {

spec::CollectiveShape shape_of(int ranks, std::int64_t elements) {
  spec::CollectiveShape shape;
  shape.ranks = ranks;
  shape.elements = elements;
  return shape;
}

// Runs an all-reduce as a library would, over a transport that has none.
std::vector<float> run_native(Group& group) {
  std::vector<float> input(5);
  std::iota(input.begin(), input.end(), 1.0F);
  std::vector<float> output(5);
  Collective collective;
  collective.schedule =
      std::make_shared<const spec::Schedule>(native_schedule("all_reduce", shape_of(group.size(), 5)));
  collective.inputs = {Buffer(std::span<float>(input))};
  collective.output = Buffer(std::span<float>(output));
  group.run(std::move(collective));
  return output;
}

TEST(NativeSchedule, HasTheSizesOfItsCollectiveAndNoRounds) {
  const spec::Schedule scattered = native_schedule("reduce_scatter", shape_of(3, 10));
  EXPECT_EQ(scattered.algorithm, "native");
  EXPECT_EQ(scattered.input_elements, (std::vector<std::int64_t>{10, 10, 10}));
  EXPECT_EQ(std::accumulate(scattered.output_elements.begin(), scattered.output_elements.end(), std::int64_t{0}), 10);
  for (const spec::RankRounds& rounds : scattered.ranks) EXPECT_TRUE(rounds.empty());
  spec::CollectiveShape rooted = shape_of(3, 10);
  rooted.root = 2;
  const spec::Schedule gathered = native_schedule("gather", rooted);
  EXPECT_EQ(gathered.root, 2);
  EXPECT_EQ(gathered.output_elements, (std::vector<std::int64_t>{0, 0, 10}));
  EXPECT_THROW(native_schedule("all_redce", shape_of(2, 1)), Error);
}

TEST(NativeSchedule, IsACopyOnOneRank) {
  const auto group = make_group(std::move(make_in_process_transports(1).front()), {});
  EXPECT_EQ(run_native(*group), (std::vector<float>{1, 2, 3, 4, 5}));
}

TEST(NativeSchedule, IsRefusedByTransportsWithoutALibraryAndTheGroupGoesOn) {
  auto transports = make_in_process_transports(2);
  for (const std::exception_ptr& thrown : testing::collect_ranks(2, [&](int rank) {
         const auto group = make_group(std::move(transports[static_cast<std::size_t>(rank)]), {});
         const Error error = testing::error_of([&] { run_native(*group); });
         EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
         EXPECT_NE(error.message().find("in_process has no algorithm native"), std::string::npos) << error.message();
         barrier(*group);
       })) {
    EXPECT_EQ(thrown, nullptr);
  }
}

}  // namespace
}  // namespace convoy::comm

// Blocking operations on the caller's thread: equal to the queued ones, in any mixture with them, and as safe.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "convoy/base/random.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Blocking : public ::testing::TestWithParam<int> {
 protected:
  const TransportKind& kind() const { return transport_kind(GetParam()); }
};

std::string name_of(const ::testing::TestParamInfo<int>& info) { return transport_kind(info.param).name; }

INSTANTIATE_TEST_SUITE_P(All, Blocking, all_transport_kinds(), name_of);

GroupOptions options(Duration timeout = seconds(20)) {
  GroupOptions chosen;
  chosen.timeout = timeout;
  return chosen;
}

// A number that differs by operation, rank and element, and whose sums are rounded.
float value_at(int operation, int rank, std::int64_t element) {
  RandomStream stream(
      StreamPurpose::kSynthesis,
      {static_cast<std::uint64_t>(operation), static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(element)});
  return static_cast<float>(stream.uniform()) - 0.4F;
}

// The same blocking and queued: sizes below, at and beyond what is published, other operations and queued work between.
TEST_P(Blocking, AnyMixtureWithQueuedOperationsGivesTheBitsOfQueuedOnesAlone) {
  for (const int ranks : {2, 3, 5}) {
    run_world(kind(), ranks, options(), [](RankWorld& world) {
      const std::vector<std::int64_t> sizes{1, 10, 11, 4096, 4097, 1023, 0, 9001, 3};
      for (int operation = 0; operation < 45; ++operation) {
        const std::int64_t elements = sizes[static_cast<std::size_t>(operation) % sizes.size()];
        const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
        auto* input = reinterpret_cast<float*>(world.memory(bytes + 4));
        auto* now = reinterpret_cast<float*>(world.memory(bytes + 4));
        auto* queued = reinterpret_cast<float*>(world.memory(bytes + 4));
        for (std::int64_t i = 0; i < elements; ++i) input[i] = value_at(operation, world.rank(), i);
        const std::span<const float> from(input, static_cast<std::size_t>(elements));
        Work work = all_reduce_async(world.group(), Buffer(from), Buffer(std::span<float>(queued, from.size())),
                                     DType::kFloat32);
        if (operation % 3 != 0) work.wait();
        all_reduce(world.group(), input, now, elements, DType::kFloat32);
        if (operation % 3 == 0) work.wait();
        if (operation % 5 == 0) barrier(world.group());
        ASSERT_EQ(std::memcmp(now, queued, bytes), 0) << "operation " << operation << " of " << elements;
        if (elements == 0) continue;
        float sum = 0.0F;  // two values have one order
        for (int rank = 0; rank < world.size(); ++rank) sum += value_at(operation, rank, 0);
        ASSERT_NEAR(now[0], sum, 1e-5);
      }
    });
  }
}

TEST_P(Blocking, WorksInPlaceForEachReductionAndType) {
  run_world(kind(), 3, options(), [](RankWorld& world) {
    const auto rank = world.rank();
    std::vector<std::int32_t> whole{rank + 1, -rank, 7};
    all_reduce(world.group(), whole.data(), whole.data(), 3, DType::kInt32);
    EXPECT_EQ(whole, (std::vector<std::int32_t>{6, -3, 21}));
    std::vector<double> mean{rank * 1.5, 3.0};
    all_reduce(world.group(), mean.data(), mean.data(), 2, DType::kFloat64, ReduceOp::kMean);
    EXPECT_EQ(mean, (std::vector<double>{1.5, 3.0}));
    EXPECT_EQ(all_reduce_number(world.group(), rank == 1 ? -4.0 : 2.0, ReduceOp::kMin), -4.0);
    EXPECT_EQ(all_reduce_number(world.group(), rank == 1 ? -4.0 : 2.0, ReduceOp::kMax), 2.0);
    EXPECT_EQ(testing::error_of([&] {
                all_reduce(world.group(), whole.data(), whole.data(), 3, DType::kInt32, ReduceOp::kMean);
              }).code(),
              ErrorCode::kNotSupported);
  });
}

TEST_P(Blocking, ALateRankIsWaitedForAndAnAbsentOneIsNamed) {
  std::atomic<int> ended{0};
  const auto thrown = collect_world(kind(), 3, options(milliseconds(1000)), [&](RankWorld& world) {
    double value = world.rank() + 1.0;
    if (world.rank() == 2) std::this_thread::sleep_for(milliseconds(200));
    all_reduce(world.group(), &value, &value, 1, DType::kFloat64);
    EXPECT_EQ(value, 6.0);
    const Deadline deadline(system_clock(), seconds(20));
    while (world.rank() == 2 && ended < 2 && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
    struct Ended {
      std::atomic<int>& count;
      ~Ended() { ++count; }
    } const at_end{ended};
    all_reduce(world.group(), &value, &value, 1, DType::kFloat64);
  });
  for (int rank = 0; rank < 2; ++rank) {
    const Error error = testing::error_in(thrown[static_cast<std::size_t>(rank)]);
    EXPECT_NE(error.message().find("rank 2 has not entered all_reduce #2"), std::string::npos) << error.message();
  }
  EXPECT_EQ(testing::error_in(thrown[2]).code(), ErrorCode::kAborted);
}

TEST_P(Blocking, DifferentOperationsNameBothSides) {
  for (const bool queued : {false, true}) {
    const auto thrown = collect_world(kind(), 2, options(seconds(5)), [&](RankWorld& world) {
      std::vector<float> values(8, 1.0F);
      const std::span<float> span(values);
      if (world.rank() == 0) {
        all_reduce(world.group(), values.data(), values.data(), 8, DType::kFloat32);
      } else if (queued) {
        broadcast_async(world.group(), Buffer(span), 0, DType::kFloat32).wait();
      } else {
        all_reduce(world.group(), values.data(), values.data(), 8, DType::kFloat32, ReduceOp::kMax);
      }
    });
    for (const std::exception_ptr& one : thrown) {
      const Error error = testing::error_in(one);
      EXPECT_EQ(error.code(), ErrorCode::kDesync) << error.what();
      EXPECT_NE(error.message().find("all_reduce sum of 8 float32"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find(queued ? "broadcast of 8" : "all_reduce max of 8"), std::string::npos)
          << error.message();
    }
  }
}

}  // namespace
}  // namespace convoy::comm

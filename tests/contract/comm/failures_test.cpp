// The contract of failures: whoever is to blame is named, on every rank, in time, and nothing is written by mistake.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "convoy/base/files.h"
#include "convoy/observe/flight_recorder.h"
#include "tests/contract/comm/worlds.h"
#include "tests/support/temporary_folder.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

GroupOptions options(Duration timeout) {
  GroupOptions chosen;
  chosen.timeout = timeout;
  return chosen;
}

class Failures : public ::testing::TestWithParam<int> {
 protected:
  const TransportKind& kind() const { return transport_kind(GetParam()); }
  // Runs a world and returns each rank's error.
  std::vector<Error> errors(int ranks, Duration timeout, const std::function<void(RankWorld&)>& body) {
    std::vector<Error> all;
    for (const std::exception_ptr& thrown : collect_world(kind(), ranks, options(timeout), body)) {
      all.push_back(testing::error_in(thrown));
    }
    return all;
  }
};

std::string name_of(const ::testing::TestParamInfo<int>& info) { return transport_kind(info.param).name; }

INSTANTIATE_TEST_SUITE_P(All, Failures, all_transport_kinds(), name_of);

TestArray filled(RankWorld& world, DType dtype, std::int64_t elements, unsigned char value) {
  TestArray array(world, dtype, elements, 0);
  array.fill(std::vector<std::byte>(static_cast<std::size_t>(elements) * element_bytes(dtype), std::byte{value}));
  return array;
}

bool holds_only(const TestArray& array, unsigned char value) {
  const std::vector<std::byte> flat = array.flat();
  return std::all_of(flat.begin(), flat.end(), [&](std::byte byte) { return byte == std::byte{value}; });
}

// Calls a function at the end of a scope, however that is reached.
class OnExit {
 public:
  explicit OnExit(std::function<void()> call) : call_(std::move(call)) {}
  ~OnExit() { call_(); }
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;

 private:
  std::function<void()> call_;
};

// A late rank: it does nothing until so many others have ended.
void wait_until(const std::atomic<int>& ended, int count) {
  const Deadline deadline(system_clock(), seconds(20));
  while (ended < count && !deadline.expired()) std::this_thread::sleep_for(milliseconds(5));
}

void expect_desync(const std::vector<Error>& errors, const std::vector<std::string>& both_sides) {
  for (const Error& error : errors) {
    EXPECT_EQ(error.code(), ErrorCode::kDesync) << error.what();
    for (const std::string& part : both_sides) {
      EXPECT_NE(error.message().find(part), std::string::npos) << part << " in: " << error.message();
    }
  }
}

TEST_P(Failures, DifferentSizesAreAnErrorOnBothSidesAndWriteNothing) {
  const auto all = errors(2, seconds(10), [](RankWorld& world) {
    barrier(world.group());
    TestArray array = filled(world, DType::kFloat32, world.rank() == 0 ? 5 : 4, 7);
    const auto finish = [&] { EXPECT_TRUE(holds_only(array, 7)); };
    try {
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
    } catch (...) {
      finish();
      throw;
    }
  });
  expect_desync(all, {"#2", "all_reduce sum of 5 float32", "all_reduce sum of 4 float32", "rank 0", "rank 1"});
}

TEST_P(Failures, DifferentTypesAreAnErrorOnBothSides) {
  const auto all = errors(2, seconds(10), [](RankWorld& world) {
    const DType dtype = world.rank() == 0 ? DType::kFloat32 : DType::kFloat64;
    TestArray array = filled(world, dtype, 4, 7);
    EXPECT_THROW(all_reduce_async(world.group(), array.buffer(), array.buffer(), dtype).wait(), Error);
    EXPECT_TRUE(holds_only(array, 7));
    all_reduce_async(world.group(), array.buffer(), array.buffer(), dtype).wait();
  });
  for (const Error& error : all) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted) << "the group has ended with the first error";
    EXPECT_NE(error.message().find("4 float32"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("4 float64"), std::string::npos) << error.message();
  }
}

TEST_P(Failures, DifferentOperationsAreAnErrorOnAllOfThreeRanks) {
  const auto all = errors(3, seconds(10), [](RankWorld& world) {
    TestArray array = filled(world, DType::kFloat32, 4, 7);
    if (world.rank() == 1) {
      broadcast_async(world.group(), array.buffer(), 0, DType::kFloat32).wait();
    } else {
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
    }
  });
  expect_desync(all, {"#1", "all_reduce sum of 4 float32", "broadcast of 4 float32 from rank 0", "rank 1"});
}

TEST_P(Failures, ARankThatComesAfterADisagreementWasFoundLearnsOfItOnce) {
  std::atomic<int> ended{0};
  run_world(kind(), 2, options(seconds(10)), [&](RankWorld& world) {
    const OnExit count([&] { ++ended; });
    if (world.rank() == 0) return world.group().abort(Error(ErrorCode::kDesync, "these two disagree"));
    wait_until(ended, 1);
    TestArray array = filled(world, DType::kFloat32, 4, 7);
    const auto reduce = [&] {
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
    };
    const Error first = testing::error_of(reduce);
    EXPECT_EQ(first.code(), ErrorCode::kDesync) << first.what();
    EXPECT_NE(first.message().find("these two disagree"), std::string::npos) << first.message();
    EXPECT_EQ(testing::error_of(reduce).code(), ErrorCode::kAborted) << "the group has ended";
  });
}

TEST_P(Failures, DifferentOwnersOfLeavesAreAnError) {
  const auto all = errors(2, seconds(10), [](RankWorld& world) {
    spec::OrderedLayout layout;
    layout.leaves = 3;
    layout.owners = {{0, 1}, {1, 3}};
    if (world.rank() == 1) layout.owners = {{0, 2}, {2, 3}};
    TestArray array = filled(world, DType::kFloat32, 4, 0);
    const auto own = layout.owners[static_cast<std::size_t>(world.rank())];
    std::vector<Buffer> inputs(spec::maximal_subtrees(3, own).size(), array.buffer());
    ordered_all_reduce_async(world.group(), layout, inputs, array.buffer(), DType::kFloat32).wait();
  });
  expect_desync(all, {"another layout"});
}

TEST_P(Failures, ALateRankIsNamedAndNeverAWaitingOne) {
  std::atomic<int> ended{0};
  const auto all = errors(4, milliseconds(1000), [&](RankWorld& world) {
    const OnExit count([&] { ++ended; });
    TestArray array = filled(world, DType::kFloat32, 5, 0);
    barrier(world.group());
    if (world.rank() == 3) wait_until(ended, 3);
    all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Error& error = all[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(error.code() == ErrorCode::kTimeout || error.code() == ErrorCode::kAborted) << error.what();
    EXPECT_NE(error.message().find("rank 3 has not entered all_reduce #2"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("all_reduce #2 of 5 float32 gave up after 1."), std::string::npos)
        << error.message();
    for (const char* innocent : {"rank 0 has", "rank 1 has", "rank 2 has"}) {
      EXPECT_EQ(error.message().find(innocent), std::string::npos) << error.message();
    }
    if (error.code() == ErrorCode::kTimeout) {
      EXPECT_EQ(error.context().peer, 3);
    }
  }
  EXPECT_EQ(all[3].code(), ErrorCode::kAborted) << all[3].what();
}

TEST_P(Failures, EveryRankLeavesItsNewestOperations) {
  const testing::TemporaryFolder folder;
  GroupOptions chosen = options(milliseconds(300));
  chosen.recorder_folder = folder.path() + "/log";
  std::atomic<int> ended{0};
  collect_world(kind(), 3, chosen, [&](RankWorld& world) {
    const OnExit count([&] { ++ended; });
    TestArray array = filled(world, DType::kFloat32, 5, 0);
    barrier(world.group());
    if (world.rank() == 1) wait_until(ended, 2);
    all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string path = observe::flight_path(chosen.recorder_folder, chosen.name, rank);
    const observe::FlightLog log = observe::read_flight_log(local_files(), path);
    EXPECT_EQ(log.rank, rank);
    EXPECT_NE(log.message.find("rank 1 has not entered all_reduce #2"), std::string::npos) << log.message;
    EXPECT_EQ(log.board[0].line.sequence, 2U);
    EXPECT_EQ(log.board[1].line.sequence, 1U);
    ASSERT_FALSE(log.operations.empty());
    EXPECT_EQ(log.operations[0].what, "barrier");
    EXPECT_EQ(log.operations[0].state, "done");
    EXPECT_GE(log.operations[0].ended_s, log.operations[0].begun_s);
    // The late rank was refused before its operation had a number.
    ASSERT_EQ(log.operations.size(), rank == 1 ? 1U : 2U);
    if (rank == 1) continue;
    EXPECT_EQ(log.operations[1].what, "all_reduce sum of 5 float32");
    EXPECT_EQ(log.operations[1].state, "failed");
    EXPECT_GE(log.operations[1].ended_s - log.operations[1].begun_s, 0.2);
  }
}

TEST_P(Failures, TwoLateRanksAreBothNamed) {
  std::atomic<int> ended{0};
  const auto all = errors(4, milliseconds(800), [&](RankWorld& world) {
    const OnExit count([&] { ++ended; });
    barrier(world.group());
    if (world.rank() >= 2) wait_until(ended, 2);
    barrier(world.group());
  });
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& message = all[static_cast<std::size_t>(rank)].message();
    EXPECT_NE(message.find("rank 2 has not entered barrier #2"), std::string::npos) << message;
    EXPECT_NE(message.find("rank 3 has not entered barrier #2"), std::string::npos) << message;
    EXPECT_EQ(message.find("rank 0 has"), std::string::npos) << message;
    EXPECT_EQ(message.find("rank 1 has"), std::string::npos) << message;
  }
}

TEST_P(Failures, AnAbortEndsAllRanksAtOnceAndNamesItsCause) {
  const TimePoint begin = system_clock().now();
  const auto all = errors(3, seconds(30), [](RankWorld& world) {
    TestArray array = filled(world, DType::kFloat32, 5, 0);
    barrier(world.group());
    if (world.rank() == 2) {
      world.group().abort(Error(ErrorCode::kFailed, "the loss is not finite"));
      world.group().abort(Error(ErrorCode::kFailed, "a later abort changes nothing"));
    }
    all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
  });
  EXPECT_LT(system_clock().now() - begin, seconds(10));
  for (const Error& error : all) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted) << error.what();
    EXPECT_NE(error.message().find("rank 2 failed first: the loss is not finite"), std::string::npos)
        << error.message();
  }
}

TEST_P(Failures, AfterAnAbortEverySubmitIsRefused) {
  const auto all = errors(2, seconds(10), [](RankWorld& world) {
    barrier(world.group());
    world.group().abort(Error(ErrorCode::kFailed, "enough"));
    barrier(world.group());
  });
  for (const Error& error : all) EXPECT_EQ(error.code(), ErrorCode::kAborted) << error.what();
}

TEST_P(Failures, AQueuedOperationFailsWithTheOneBeforeIt) {
  std::atomic<int> ended{0};
  errors(2, milliseconds(500), [&](RankWorld& world) {
    const OnExit count([&] { ++ended; });
    TestArray array = filled(world, DType::kFloat32, 5, 0);
    if (world.rank() == 1) return wait_until(ended, 1);
    Work first = all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32);
    Work second = all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32);
    EXPECT_EQ(testing::error_of([&] { first.wait(); }).code(), ErrorCode::kTimeout);
    EXPECT_EQ(testing::error_of([&] { second.wait(); }).code(), ErrorCode::kAborted);
  });
}

TEST_P(Failures, ARankThatLeavesIsNoticedAndNamed) {
  const TimePoint begin = system_clock().now();
  const auto all = errors(4, seconds(30), [](RankWorld& world) {
    for (int round = 0; round < 5; ++round) barrier(world.group());
    if (world.rank() == 2) return world.leave();
    for (int round = 0; round < 5; ++round) barrier(world.group());
  });
  EXPECT_LT(system_clock().now() - begin, seconds(10));
  for (const int rank : {0, 1, 3}) {
    const Error& error = all[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(error.code() == ErrorCode::kPeerLost || error.code() == ErrorCode::kAborted) << error.what();
    EXPECT_NE(error.message().find("rank 2 was lost: it has left the group"), std::string::npos) << error.message();
  }
}

TEST_P(Failures, WhoeverLeavesAfterTheLastOperationDoesNotDisturbTheOthers) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto all = errors(3, seconds(10), [](RankWorld& world) {
      TestArray array = filled(world, DType::kInt32, 5000, 1);
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kInt32).wait();
      world.leave();
      EXPECT_TRUE(holds_only(array, 3));
    });
    for (const Error& error : all) ASSERT_EQ(error.message(), "nothing was thrown");
  }
}

TEST_P(Failures, DestroyingAGroupWithRunningWorkEndsItOnAllRanks) {
  const TimePoint begin = system_clock().now();
  errors(2, seconds(30), [](RankWorld& world) {
    if (world.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(300));
      EXPECT_THROW(barrier(world.group()), Error);
      return;
    }
    TestArray array = filled(world, DType::kFloat32, 5, 0);
    Work work = all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32);
    std::this_thread::sleep_for(milliseconds(100));
    world.leave();
    EXPECT_EQ(testing::error_of([&] { work.wait(); }).code(), ErrorCode::kAborted);
  });
  EXPECT_LT(system_clock().now() - begin, seconds(10));
}

TEST_P(Failures, EmptyOperationsLeaveLaterOnesInStep) {
  const auto all = errors(4, seconds(10), [](RankWorld& world) {
    for (int round = 0; round < 3; ++round) {
      TestArray nothing(world, DType::kFloat32, 0, 0);
      all_reduce_async(world.group(), nothing.buffer(), nothing.buffer(), DType::kFloat32).wait();
      broadcast_async(world.group(), nothing.buffer(), 1, DType::kFloat32).wait();
      all_gather_async(world.group(), nothing.buffer(), nothing.buffer(), {0, 0, 0, 0}, DType::kFloat32).wait();
      EXPECT_EQ(all_reduce_number(world.group(), 1.0, ReduceOp::kSum), 4.0);
    }
  });
  for (const Error& error : all) EXPECT_EQ(error.message(), "nothing was thrown");
}

// Messages of a generation that is over: they were offered before this group was formed.
TEST(StaleGeneration, IsDropped) {
  auto transports = make_in_process_transports(2);
  std::array<double, 2> old{111.0, 222.0};
  const auto* const bytes = reinterpret_cast<const std::byte*>(old.data());
  ASSERT_TRUE(transports[1]->try_send(0, MessageHeader{6, 1, 0, 8}, bytes).has_value());
  ASSERT_TRUE(transports[0]->try_send(1, MessageHeader{6, 1, 0, 16}, bytes).has_value());
  testing::run_ranks(2, [&](int rank) {
    GroupOptions chosen = options(seconds(10));
    chosen.generation = 7;
    const auto group = make_group(std::move(transports[static_cast<std::size_t>(rank)]), chosen);
    EXPECT_EQ(all_reduce_number(*group, 1.0 + rank, ReduceOp::kSum), 3.0);
    EXPECT_EQ(all_reduce_number(*group, 5.0, ReduceOp::kSum), 10.0);
  });
}

TEST(StrayMessage, IsAnErrorThatNamesItsSender) {
  auto transports = make_in_process_transports(2);
  std::array<double, 2> stray{111.0, 222.0};
  const auto* const bytes = reinterpret_cast<const std::byte*>(stray.data());
  ASSERT_TRUE(transports[1]->try_send(0, MessageHeader{1, 9, 0, 8}, bytes).has_value());
  const auto thrown = testing::collect_ranks(2, [&](int rank) {
    const auto group = make_group(std::move(transports[static_cast<std::size_t>(rank)]), options(seconds(10)));
    all_reduce_number(*group, 1.0 + rank, ReduceOp::kSum);
  });
  const Error error = testing::error_in(thrown[0]);
  EXPECT_EQ(error.code(), ErrorCode::kDesync) << error.what();
  EXPECT_NE(error.message().find("rank 1 sent message 0 of operation #9"), std::string::npos) << error.message();
}

TEST(TwoGroups, OfTheSameRanksDoNotMixUp) {
  MemoryStore store;
  testing::run_ranks(4, [&](int rank) {
    // Ranks 0 and 3 form one group, 1 and 2 the other; both run at the same time, in any order.
    const bool outer = rank == 0 || rank == 3;
    for (int repeat = 0; repeat < 20; ++repeat) {
      SharedMemoryOptions shared;
      shared.group = outer ? "outer" : "inner";
      shared.limit = seconds(20);
      const auto group =
          make_group(make_shared_memory_transport(store, rank >= 2 ? 1 : 0, 2, shared), options(seconds(10)));
      EXPECT_EQ(all_reduce_number(*group, 1 << rank, ReduceOp::kSum), outer ? 9.0 : 6.0);
    }
  });
}

TEST(Joining, NamesTheRanksThatDoNotCome) {
  MemoryStore store;
  testing::run_ranks(2, [&](int rank) {
    SharedMemoryOptions shared;
    shared.limit = milliseconds(1000);
    shared.generation = 3;
    const Error error = testing::error_of([&] { make_shared_memory_transport(store, rank, 4, shared); });
    EXPECT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
    EXPECT_NE(error.message().find("ranks 2, 3 did not come to group 'world' (generation 3)"), std::string::npos)
        << error.message();
  });
  EXPECT_FALSE(store.try_get("group/world/3/rank/0").has_value()) << "a rank that gives up takes its keys away";
}

}  // namespace
}  // namespace convoy::comm

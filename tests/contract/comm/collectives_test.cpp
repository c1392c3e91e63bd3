// The contract of collectives: one suite over all transports and numbers of ranks, against a serial reference.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <tuple>

#include "convoy/spec/blocks.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/replica_tree.h"
#include "tests/contract/comm/reference.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

GroupOptions options(Duration timeout = std::chrono::seconds(30)) {
  GroupOptions chosen;
  chosen.timeout = timeout;
  chosen.chunk_bytes = 3000;
  chosen.cache_bytes = 60000;  // so that the larger sizes of the tests are stored past the caches
  return chosen;
}

Bytes slice(const Bytes& bytes, spec::ElementRange range, std::size_t width) {
  const auto at = [&](std::int64_t element) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(element) * width);
  };
  return Bytes(at(range.begin), at(range.end));
}

class Collectives : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const TransportKind& kind() const { return transport_kind(std::get<0>(GetParam())); }
  int ranks() const { return std::get<1>(GetParam()); }
  void run(const std::function<void(RankWorld&)>& body, const GroupOptions& chosen = options()) {
    run_world(kind(), ranks(), chosen, body);
  }
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<int, int>>& info) {
  return fmt::format("{}On{}", transport_kind(std::get<0>(info.param)).name, std::get<1>(info.param));
}

// The last kind, of two connections a pair, takes long to form groups: fewer numbers of ranks do for it.
INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         ::testing::Combine(::testing::Range(0, static_cast<int>(transport_kinds().size()) - 1),
                                            ::testing::Values(1, 2, 3, 4, 5, 8)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(TwoInterfaces, Collectives,
                         ::testing::Combine(::testing::Values(static_cast<int>(transport_kinds().size()) - 1),
                                            ::testing::Values(2, 5)),
                         name_of);

constexpr std::int64_t kSizes[] = {0, 1, 3, 1023, 4097, 65537};

TEST_P(Collectives, AllReduceIsTheTreeOverRanksForEveryTypeAndReduction) {
  run([&](RankWorld& world) {
    for (const DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kBFloat16, DType::kFloat16}) {
      for (const ReduceOp reduce :
           {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
        const bool integer = dtype == DType::kInt32 || dtype == DType::kInt64;
        if (integer && reduce == ReduceOp::kMean) continue;
        for (const std::int64_t elements : {std::int64_t{3}, std::int64_t{4097}}) {
          TestArray input(world, dtype, elements, 0);
          TestArray output(world, dtype, elements, 0);
          input.fill(values_as(dtype, world.rank(), elements));
          all_reduce_async(world.group(), input.buffer(), output.buffer(), dtype, reduce).wait();
          EXPECT_EQ(output.flat(), reference_as(dtype, world.size(), elements, reduce))
              << to_string(dtype) << " " << to_string(reduce) << " " << elements;
          EXPECT_EQ(input.flat(), values_as(dtype, world.rank(), elements)) << "the input is only read";
        }
      }
    }
  });
}

TEST_P(Collectives, AllReduceTakesEverySizeInPlaceAndCutInPieces) {
  run([&](RankWorld& world) {
    for (const std::int64_t elements : kSizes) {
      const Bytes expected = reference_as(DType::kFloat32, world.size(), elements, ReduceOp::kSum);
      TestArray place(world, DType::kFloat32, elements, 0);
      place.fill(values_as(DType::kFloat32, world.rank(), elements));
      all_reduce_async(world.group(), place.buffer(), place.buffer(), DType::kFloat32).wait();
      EXPECT_EQ(place.flat(), expected) << "in place, " << elements;
      TestArray input(world, DType::kFloat32, elements, 7 + world.rank());
      TestArray output(world, DType::kFloat32, elements, 3 * world.rank());
      input.fill(values_as(DType::kFloat32, world.rank(), elements));
      all_reduce_async(world.group(), input.buffer(), output.buffer(), DType::kFloat32).wait();
      EXPECT_EQ(output.flat(), expected) << "in pieces, " << elements;
      all_reduce_async(world.group(), input.buffer(), input.buffer(), DType::kFloat32).wait();
      EXPECT_EQ(input.flat(), expected) << "in pieces in place, " << elements;
    }
  });
}

TEST_P(Collectives, ManyPiecesDoNotFillTheQueues) {
  run([&](RankWorld& world) {
    TestArray input(world, DType::kFloat64, 9001, 150 + world.rank());
    input.fill(values_as(DType::kFloat64, world.rank(), 9001));
    all_reduce_async(world.group(), input.buffer(), input.buffer(), DType::kFloat64).wait();
    EXPECT_EQ(input.flat(), reference_as(DType::kFloat64, world.size(), 9001, ReduceOp::kSum));
  });
}

TEST_P(Collectives, MisalignedMemoryGivesTheSameBits) {
  run([&](RankWorld& world) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      TestArray input(world, dtype, 5000, 2, 1 + static_cast<std::size_t>(world.rank() % 3));
      TestArray output(world, dtype, 5000, 1, 2);
      input.fill(values_as(dtype, world.rank(), 5000));
      all_reduce_async(world.group(), input.buffer(), output.buffer(), dtype, ReduceOp::kMean).wait();
      EXPECT_EQ(output.flat(), reference_as(dtype, world.size(), 5000, ReduceOp::kMean));
    }
  });
}

TEST_P(Collectives, OrderedAllReduceHasTheSameBitsOnAnyNumberOfRanks) {
  const int leaves = 8;
  const std::int64_t elements = 9001;
  const Bytes expected = bytes_of(reference<float>(leaves, elements, ReduceOp::kMean));
  spec::OrderedLayout layout;
  layout.leaves = leaves;
  layout.owners = spec::deal_replicas(leaves, ranks());
  run([&](RankWorld& world) {
    std::vector<std::vector<float>> values;
    for (int leaf = 0; leaf < leaves; ++leaf) values.push_back(values_of<float>(leaf, elements));
    std::vector<TestArray> inputs;
    for (const spec::ReplicaRange part :
         spec::maximal_subtrees(leaves, layout.owners[static_cast<std::size_t>(world.rank())])) {
      inputs.emplace_back(world, DType::kFloat32, elements, world.rank() % 3);
      const auto begin = static_cast<std::size_t>(part.begin);
      inputs.back().fill(bytes_of(tree_reference(values, ReduceOp::kSum, begin, static_cast<std::size_t>(part.end))));
    }
    std::vector<Buffer> buffers;
    for (const TestArray& input : inputs) buffers.push_back(input.buffer());
    // The output is the memory of the first input, as gradients are reduced in place.
    ordered_all_reduce_async(world.group(), layout, buffers, buffers[0], DType::kFloat32, ReduceOp::kMean).wait();
    EXPECT_EQ(inputs[0].flat(), expected);
  });
}

TEST_P(Collectives, ReduceScatterGivesEachRankItsShard) {
  run([&](RankWorld& world) {
    for (const std::int64_t elements : kSizes) {
      const spec::ElementRange own = spec::shard_range(elements, world.size(), world.rank());
      TestArray input(world, DType::kFloat64, elements, 2);
      TestArray output(world, DType::kFloat64, own.size(), 1);
      input.fill(values_as(DType::kFloat64, world.rank(), elements));
      reduce_scatter_async(world.group(), input.buffer(), output.buffer(), DType::kFloat64).wait();
      const Bytes whole = reference_as(DType::kFloat64, world.size(), elements, ReduceOp::kSum);
      EXPECT_EQ(output.flat(), slice(whole, own, sizeof(double))) << elements;
    }
  });
}

TEST_P(Collectives, AllGatherTakesPartsOfAnySizeAndType) {
  run([&](RankWorld& world) {
    for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kUInt8}) {
      // Some parts are empty, one is large.
      std::vector<std::int64_t> parts;
      for (int rank = 0; rank < world.size(); ++rank) parts.push_back(rank % 3 == 1 ? 0 : 3 + 2500 * rank);
      Bytes expected;
      for (int rank = 0; rank < world.size(); ++rank) {
        const Bytes part = values_as(dtype, rank, parts[static_cast<std::size_t>(rank)]);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const std::int64_t own = parts[static_cast<std::size_t>(world.rank())];
      const auto total = static_cast<std::int64_t>(expected.size() / element_bytes(dtype));
      TestArray input(world, dtype, own, 1);
      TestArray output(world, dtype, total, world.rank());
      input.fill(values_as(dtype, world.rank(), own));
      all_gather_async(world.group(), input.buffer(), output.buffer(), parts, dtype).wait();
      EXPECT_EQ(output.flat(), expected) << to_string(dtype);
    }
  });
}

TEST_P(Collectives, AllGatherWorksInPlace) {
  run([&](RankWorld& world) {
    std::vector<std::int64_t> parts(static_cast<std::size_t>(world.size()), 1000);
    std::vector<std::byte> expected;
    for (int rank = 0; rank < world.size(); ++rank) {
      const Bytes part = values_as(DType::kFloat32, rank, 1000);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    auto* const memory = reinterpret_cast<float*>(world.memory(expected.size()));
    float* const own = memory + world.rank() * 1000;
    std::memcpy(own, values_as(DType::kFloat32, world.rank(), 1000).data(), 4000);
    const Buffer input{std::span<float>(own, 1000)};
    const Buffer output{std::span<float>(memory, static_cast<std::size_t>(world.size()) * 1000)};
    all_gather_async(world.group(), input, output, parts, DType::kFloat32).wait();
    EXPECT_EQ(std::memcmp(memory, expected.data(), expected.size()), 0);
  });
}

TEST_P(Collectives, BroadcastGivesEveryRankTheRootsValues) {
  run([&](RankWorld& world) {
    for (int root = 0; root < world.size(); ++root) {
      for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, std::int64_t{10001}}) {
        TestArray array(world, DType::kInt64, elements, world.rank());
        array.fill(values_as(DType::kInt64, world.rank(), elements));
        broadcast_async(world.group(), array.buffer(), root, DType::kInt64).wait();
        EXPECT_EQ(array.flat(), values_as(DType::kInt64, root, elements));
      }
    }
  });
}

TEST_P(Collectives, ReadySchedulesOfOtherAlgorithmsRunToo) {
  run([&](RankWorld& world) {
    Collective ring;
    ring.schedule = std::make_shared<const spec::Schedule>(spec::ring_all_reduce(world.size(), 20011));
    TestArray array(world, DType::kInt64, 20011, 2);
    array.fill(values_as(DType::kInt64, world.rank(), 20011));
    ring.inputs = {array.buffer()};
    ring.output = array.buffer();
    ring.dtype = DType::kInt64;
    world.group().submit(ring).wait();
    EXPECT_EQ(array.flat(), reference_as(DType::kInt64, world.size(), 20011, ReduceOp::kSum));

    std::vector<std::int64_t> parts(static_cast<std::size_t>(world.size()), 1111);
    parts.back() = 7;
    Collective gather;
    gather.schedule = std::make_shared<const spec::Schedule>(spec::ring_all_gather(parts));
    const std::int64_t own = parts[static_cast<std::size_t>(world.rank())];
    TestArray input(world, DType::kInt64, own, 0);
    TestArray output(world, DType::kInt64, gather.schedule->elements, 0);
    input.fill(values_as(DType::kInt64, world.rank(), own));
    gather.inputs = {input.buffer()};
    gather.output = output.buffer();
    gather.dtype = DType::kInt64;
    world.group().submit(gather).wait();
    Bytes expected;
    for (int rank = 0; rank < world.size(); ++rank) {
      const Bytes part = values_as(DType::kInt64, rank, parts[static_cast<std::size_t>(rank)]);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(output.flat(), expected);
  });
}

// A round in which everybody sends its whole memory and overwrites that same memory: no one may wait for the other to
// read first, and no one may read what is already new.
TEST_P(Collectives, ARoundThatOverwritesWhatItSendsIsSafe) {
  const std::int64_t elements = 3000;
  run([&](RankWorld& world) {
    spec::Schedule schedule;
    schedule.algorithm = "exchange";
    schedule.collective = "all_reduce";
    schedule.elements = elements;
    schedule.contributions = world.size();
    const auto count = static_cast<std::size_t>(world.size());
    schedule.input_elements.assign(count, elements);
    schedule.output_elements.assign(count, elements);
    schedule.inputs.assign(count, 1);
    schedule.scratches.assign(count, world.size());
    for (int rank = 0; rank < world.size(); ++rank) {
      spec::Round round;
      spec::Operation reduce;
      reduce.kind = spec::OpKind::kReduce;
      reduce.target = {spec::BufferKind::kOutput, 0, 0, elements};
      reduce.final = true;
      for (int peer = 0; peer < world.size(); ++peer) {
        const bool own = peer == rank;
        reduce.sources.push_back(
            {own ? spec::BufferKind::kInput : spec::BufferKind::kScratch, own ? 0 : peer, 0, elements});
        reduce.program.push_back(peer);
        if (peer > 0) reduce.program.push_back(spec::kAdd);
        if (own) continue;
        round.push_back({spec::OpKind::kSend, peer, {spec::BufferKind::kInput, 0, 0, elements}, {}, {}});
        round.push_back({spec::OpKind::kReceive, peer, {spec::BufferKind::kScratch, peer, 0, elements}, {}, {}});
      }
      round.push_back(reduce);
      schedule.ranks.push_back({round});
    }
    Collective collective;
    collective.schedule = std::make_shared<const spec::Schedule>(schedule);
    TestArray array(world, DType::kInt32, elements, 1);
    array.fill(values_as(DType::kInt32, world.rank(), elements));
    collective.inputs = {array.buffer()};
    collective.output = array.buffer();
    collective.dtype = DType::kInt32;
    for (int repeat = 0; repeat < 3; ++repeat) {
      array.fill(values_as(DType::kInt32, world.rank(), elements));
      world.group().submit(collective).wait();
      ASSERT_EQ(array.flat(), reference_as(DType::kInt32, world.size(), elements, ReduceOp::kSum));
    }
  });
}

TEST_P(Collectives, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered{0};
  run([&](RankWorld& world) {
    for (int round = 1; round <= 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(world.rank() == round % world.size() ? 5 : 0));
      ++entered;
      barrier(world.group());
      EXPECT_GE(entered.load(), round * world.size());
      barrier(world.group());
    }
  });
}

TEST_P(Collectives, NumbersAreCombined) {
  run([&](RankWorld& world) {
    const double own = world.rank() + 1.5;
    const double n = world.size();
    EXPECT_EQ(all_reduce_number(world.group(), own, ReduceOp::kSum), n * (n - 1) / 2 + 1.5 * n);
    EXPECT_EQ(all_reduce_number(world.group(), own, ReduceOp::kMean), (n - 1) / 2 + 1.5);
    EXPECT_EQ(all_reduce_number(world.group(), own, ReduceOp::kMin), 1.5);
    EXPECT_EQ(all_reduce_number(world.group(), own, ReduceOp::kMax), n + 0.5);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(all_reduce_number(world.group(), world.rank() == 0 ? nan : own, ReduceOp::kMax)));
  });
}

TEST_P(Collectives, OperationsInFlightRunInTheOrderOfSubmission) {
  run([&](RankWorld& world) {
    std::vector<TestArray> arrays;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      arrays.emplace_back(world, DType::kFloat32, 100 * i, i % 3);
      arrays.back().fill(values_as(DType::kFloat32, world.rank() + i, 100 * i));
      works.push_back(all_reduce_async(world.group(), arrays.back().buffer(), arrays.back().buffer(), DType::kFloat32,
                                       ReduceOp::kMax));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].wait();
      EXPECT_TRUE(works[i].done());
      std::vector<float> expected(100 * i, -std::numeric_limits<float>::infinity());
      for (int rank = 0; rank < world.size(); ++rank) {
        const auto values = values_of<float>(rank + static_cast<int>(i), static_cast<std::int64_t>(100 * i));
        for (std::size_t k = 0; k < values.size(); ++k) expected[k] = std::max(expected[k], values[k]);
      }
      EXPECT_EQ(arrays[i].flat(), bytes_of(expected));
    }
  });
}

TEST_P(Collectives, SentBytesAreThoseOfTheSchedule) {
  run([&](RankWorld& world) {
    TestArray array(world, DType::kFloat32, 65536, 0);
    array.fill(values_as(DType::kFloat32, world.rank(), 65536));
    all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32).wait();
    const std::int64_t own = spec::shard_range(65536, world.size(), world.rank()).size();
    const std::int64_t elements = 65536 - own + (world.size() - 1) * own;
    EXPECT_EQ(world.group().sent_bytes(), static_cast<std::uint64_t>(elements) * 4);
  });
}

TEST_P(Collectives, AnIntegerMeanIsRefusedBeforeAnythingMoves) {
  run([&](RankWorld& world) {
    TestArray array(world, DType::kInt32, 5, 0);
    const Bytes before = values_as(DType::kInt32, world.rank(), 5);
    array.fill(before);
    const Error error = testing::error_of([&] {
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kInt32, ReduceOp::kMean).wait();
    });
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_EQ(array.flat(), before);
    barrier(world.group());
  });
}

TEST_P(Collectives, AWrongBufferIsRefusedByName) {
  run([&](RankWorld& world) {
    TestArray input(world, DType::kFloat32, 5, 0);
    TestArray output(world, DType::kFloat32, 6, 0);
    const Error error = testing::error_of(
        [&] { all_reduce_async(world.group(), input.buffer(), output.buffer(), DType::kFloat32).wait(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("6 elements where 5"), std::string::npos) << error.message();
  });
}

TEST(MeanOfTwoRanks, IsTheMeanAndNotTheSum) {
  for (const TransportKind& kind : transport_kinds()) {
    run_world(kind, 2, options(), [&](RankWorld& world) {
      const std::vector<float> own =
          world.rank() == 0 ? std::vector<float>{2, 4, 6, 8} : std::vector<float>{4, 8, 10, 12};
      TestArray array(world, DType::kFloat32, 4, 0);
      array.fill(bytes_of(own));
      all_reduce_async(world.group(), array.buffer(), array.buffer(), DType::kFloat32, ReduceOp::kMean).wait();
      EXPECT_EQ(array.flat(), bytes_of(std::vector<float>{3, 6, 8, 10})) << kind.name;
    });
  }
}

}  // namespace
}  // namespace convoy::comm

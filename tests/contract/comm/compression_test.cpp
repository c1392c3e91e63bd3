// Wire formats on every algorithm that sums: all ranks end with the same bits, near the exact sums, for the bytes told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <vector>

#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/registry.h"
#include "tests/contract/comm/by_definition.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

using Floats = std::vector<float>;

float float_value(int rank, std::int64_t element) {
  return std::sin(static_cast<float>(element * 7 + rank * 3 + 1)) * static_cast<float>(1 + element % 5);
}

std::span<float> floats_in(RankWorld& world, std::int64_t count) {
  auto* const data = reinterpret_cast<float*>(world.memory(static_cast<std::size_t>(count) * sizeof(float)));
  return {data, static_cast<std::size_t>(count)};
}

std::span<float> input_of(RankWorld& world, std::int64_t count) {
  const std::span<float> input = floats_in(world, count);
  for (std::size_t e = 0; e < input.size(); ++e) input[e] = float_value(world.rank(), static_cast<std::int64_t>(e));
  return input;
}

// What ranks end with, by rank.
struct Results {
  std::mutex mutex;
  std::vector<Floats> outputs;
  void put(int rank, std::span<const float> output) {
    const std::scoped_lock lock(mutex);
    outputs[static_cast<std::size_t>(rank)].assign(output.begin(), output.end());
  }
};

// The error that a sum of `hops` rounded values of size up to 5 may have; the last rounding is of their sum.
float bound(WireFormat format, int ranks) {
  const float largest = 5.0F * static_cast<float>(ranks);
  const float step = format == WireFormat::kFloat16    ? 1.0F / 2048
                     : format == WireFormat::kBFloat16 ? 1.0F / 256
                     : format == WireFormat::kInt8     ? 1.0F / 127
                                                       : 1e-6F;
  return 2 * largest * step * static_cast<float>(ranks);
}

class Compressed : public ::testing::TestWithParam<int> {};

TEST_P(Compressed, EveryAlgorithmGivesAllRanksTheSameBitsNearTheExactSums) {
  const TransportKind& kind = transport_kind(GetParam());
  for (const int ranks : {2, 3, 5}) {
    for (const spec::Algorithm& algorithm : spec::algorithms()) {
      if (algorithm.collective != "all_reduce") continue;
      spec::CollectiveShape shape = shape_of(algorithm, ranks, 9001);
      shape.layout = spec::OrderedLayout{ranks, spec::deal_replicas(ranks, ranks)};
      const auto schedule = std::make_shared<const spec::Schedule>(
          spec::build(algorithm.collective, algorithm.name, spec::with_defaults(shape)));
      for (const WireFormat format :
           {WireFormat::kFloat16, WireFormat::kBFloat16, WireFormat::kInt8, WireFormat::kSparse}) {
        Results results;
        results.outputs.resize(static_cast<std::size_t>(ranks));
        run_world(kind, ranks, GroupOptions{}, [&](RankWorld& world) {
          Collective collective;
          collective.schedule = schedule;
          const std::span<float> input = input_of(world, 9001);
          collective.inputs = {Buffer(input)};
          collective.output = Buffer(input);
          collective.compression.format = format;
          world.group().submit(collective).wait();
          results.put(world.rank(), input);
        });
        for (std::int64_t e = 0; e < 9001; ++e) {
          double exact = 0;
          for (int rank = 0; rank < ranks; ++rank) exact += float_value(rank, e);
          const auto at = static_cast<std::size_t>(e);
          ASSERT_NEAR(results.outputs[0][at], exact, bound(format, ranks))
              << algorithm.name << " in " << to_string(format) << ", element " << e;
        }
        for (const Floats& output : results.outputs) {
          ASSERT_EQ(output, results.outputs[0]) << algorithm.name << " in " << to_string(format);
        }
        if (HasFailure()) return;
      }
    }
    // Every message costs much there.
    if (kind.medium == TransportKind::Medium::kGloo) return;
  }
}

TEST_P(Compressed, SendsTheBytesOfItsFormat) {
  run_world(transport_kind(GetParam()), 3, GroupOptions{}, [&](RankWorld& world) {
    const spec::OrderedLayout layout = {3, spec::deal_replicas(3, 3)};
    spec::CollectiveShape shape;
    shape.ranks = 3;
    shape.elements = 6 * 4096;
    const auto elements =
        static_cast<std::uint64_t>(spec::find_algorithm("all_reduce", "ordered_exchange")
                                       .sent(spec::with_defaults(shape))[static_cast<std::size_t>(world.rank())]);
    const std::span<float> input = input_of(world, shape.elements);
    const auto sent = [&](WireFormat format) {
      const std::uint64_t before = world.group().sent_bytes();
      compressed_all_reduce_async(world.group(), layout, {Buffer(input)}, Buffer(input), {format, 1}).wait();
      return world.group().sent_bytes() - before;
    };
    EXPECT_EQ(sent(WireFormat::kPlain), 4 * elements);
    EXPECT_EQ(sent(WireFormat::kFloat16), 2 * elements);
    EXPECT_EQ(sent(WireFormat::kBFloat16), 2 * elements);
    // Shards are whole blocks.
    EXPECT_EQ(sent(WireFormat::kInt8), elements + elements / 256 * 4);
  });
}

TEST_P(Compressed, TopKSendsFewBytesAndItsResidualMakesThemGoodLater) {
  run_world(transport_kind(GetParam()), 2, GroupOptions{}, [&](RankWorld& world) {
    const spec::OrderedLayout layout = {2, spec::deal_replicas(2, 2)};
    constexpr std::int64_t kElements = 2 * 4096;
    constexpr int kSteps = 60;
    const std::span<float> residual = floats_in(world, kElements);
    std::fill(residual.begin(), residual.end(), 0.0F);
    std::vector<double> total(kElements, 0.0);
    const std::uint64_t before = world.group().sent_bytes();
    for (int step = 0; step < kSteps; ++step) {
      const std::span<float> values = input_of(world, kElements);
      compressed_all_reduce_async(world.group(), layout, {Buffer(values)}, Buffer(values),
                                  {WireFormat::kSparse, 1.0 / 16}, ReduceOp::kSum, Buffer(residual))
          .wait();
      for (std::size_t e = 0; e < total.size(); ++e) total[e] += values[e];
    }
    // Plainly each rank sends half of its input and its half of the sums.
    const std::uint64_t plain = static_cast<std::uint64_t>(kSteps) * kElements * 4;
    EXPECT_LT(world.group().sent_bytes() - before, plain / 3);
    double worst = 0;
    for (std::int64_t e = 0; e < kElements; ++e) {
      const double exact = kSteps * (static_cast<double>(float_value(0, e)) + float_value(1, e));
      worst = std::max(worst, std::abs(total[static_cast<std::size_t>(e)] - exact));
    }
    // What is late is what lies in the residuals: at most some 16 steps of the largest values.
    EXPECT_LT(worst, 2 * 16 * 5.0);
  });
}

TEST_P(Compressed, RoundingErrorsOfInputsLieInTheResidual) {
  run_world(transport_kind(GetParam()), 2, GroupOptions{}, [&](RankWorld& world) {
    const spec::OrderedLayout layout = {2, spec::deal_replicas(2, 2)};
    constexpr std::int64_t kElements = 2 * 4096;
    const std::span<float> residual = floats_in(world, kElements);
    const std::span<float> output = floats_in(world, kElements);
    std::fill(residual.begin(), residual.end(), 0.0F);
    const std::span<float> input = input_of(world, kElements);
    compressed_all_reduce_async(world.group(), layout, {Buffer(input)}, Buffer(output), {WireFormat::kInt8, 1},
                                ReduceOp::kSum, Buffer(residual))
        .wait();
    // A rank rounds what it sends of its input, which is the other one's half, and keeps its own half as it is.
    const std::int64_t own = world.rank() * 4096;
    int lost = 0;
    for (std::int64_t e = 0; e < kElements; ++e) {
      const float left = residual[static_cast<std::size_t>(e)];
      if (e >= own && e < own + 4096) {
        EXPECT_EQ(left, 0);
      } else {
        EXPECT_LE(std::abs(left), 5.0F / 127);
        lost += left != 0 ? 1 : 0;
      }
    }
    EXPECT_GT(lost, 1000);
  });
}

TEST_P(Compressed, RanksThatDisagreeAboutTheFormatSaySo) {
  GroupOptions options;
  options.timeout = std::chrono::seconds(5);
  const auto thrown = collect_world(transport_kind(GetParam()), 2, options, [&](RankWorld& world) {
    const std::span<float> input = input_of(world, 5000);
    const WireFormat format = world.rank() == 0 ? WireFormat::kInt8 : WireFormat::kFloat16;
    compressed_all_reduce_async(world.group(), {2, spec::deal_replicas(2, 2)}, {Buffer(input)}, Buffer(input),
                                {format, 1})
        .wait();
  });
  for (const std::exception_ptr& one : thrown) {
    const Error error = testing::error_in(one);
    EXPECT_EQ(error.code(), ErrorCode::kDesync);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("another wire format"));
  }
}

TEST_P(Compressed, WhatCannotBeCompressedIsRefused) {
  run_world(transport_kind(GetParam()), 2, GroupOptions{}, [&](RankWorld& world) {
    const std::span<float> memory = floats_in(world, 8);
    const auto refusal = [&](Collective collective) -> std::string {
      try {
        world.group().submit(std::move(collective)).wait();
      } catch (const Error& error) {
        return error.message();
      }
      return "ran";
    };
    Collective sum;
    sum.schedule = std::make_shared<const spec::Schedule>(spec::ordered_all_reduce(spec::one_leaf_each(2), 4));
    sum.inputs = {Buffer(memory.first(4))};
    sum.output = Buffer(memory.first(4));
    sum.residual = Buffer(memory.last(4));
    EXPECT_THAT(refusal(sum), ::testing::HasSubstr("a residual without compression"));
    sum.compression.format = WireFormat::kSparse;
    sum.residual = Buffer(memory.last(3));
    EXPECT_THAT(refusal(sum), ::testing::HasSubstr("a residual of 3 elements"));
    sum.residual = Buffer();
    sum.compression.keep = 0;
    EXPECT_THAT(refusal(sum), ::testing::HasSubstr("a share of 0"));
    sum.compression.keep = 1;
    sum.dtype = DType::kInt32;
    EXPECT_THAT(refusal(sum), ::testing::HasSubstr("no top_k on the wire of int32"));
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Compressed, all_transport_kinds(),
                         [](const auto& info) { return transport_kind(info.param).name; });

}  // namespace
}  // namespace convoy::comm

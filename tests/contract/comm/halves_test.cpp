// 16-bit elements through the engine: summed in float32, rounded once, and refused where that cannot be.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "convoy/base/half.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/replica_tree.h"
#include "tests/contract/comm/reference.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

GroupOptions options() {
  GroupOptions chosen;
  chosen.timeout = std::chrono::seconds(30);
  return chosen;
}

// Every rank brings the same number of leaves as inputs of its own, sends all of them to all, and combines them all
// along the canonical tree in one reduction.
spec::Schedule exchange_of_leaves(int ranks, int leaves, std::int64_t elements) {
  const int own = leaves / ranks;
  const auto count = static_cast<std::size_t>(ranks);
  spec::Schedule schedule;
  schedule.algorithm = "exchange_of_leaves";
  schedule.collective = "all_reduce";
  schedule.elements = elements;
  schedule.contributions = leaves;
  schedule.input_elements.assign(count, elements);
  schedule.output_elements.assign(count, elements);
  schedule.inputs.assign(count, own);
  schedule.scratches.assign(count, leaves);
  std::vector<spec::ReplicaRange> parts;
  for (int leaf = 0; leaf < leaves; ++leaf) parts.push_back({leaf, leaf + 1});
  for (int rank = 0; rank < ranks; ++rank) {
    spec::Round round;
    spec::Operation reduce;
    reduce.kind = spec::OpKind::kReduce;
    reduce.target = {spec::BufferKind::kOutput, 0, 0, elements};
    reduce.program = spec::tree_program(leaves, parts);
    reduce.final = true;
    for (int leaf = 0; leaf < leaves; ++leaf) {
      const int owner = leaf / own;
      if (owner == rank) {
        reduce.sources.push_back({spec::BufferKind::kInput, leaf % own, 0, elements});
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer != rank) round.push_back({spec::OpKind::kSend, peer, reduce.sources.back(), {}, {}});
        }
      } else {
        reduce.sources.push_back({spec::BufferKind::kScratch, leaf, 0, elements});
        round.push_back({spec::OpKind::kReceive, owner, reduce.sources.back(), {}, {}});
      }
    }
    round.push_back(reduce);
    schedule.ranks.push_back({round});
  }
  return schedule;
}

TEST(Halves, FiveHundredAndTwelveOnesAreFiveHundredAndTwelve) {
  constexpr std::int64_t kElements = 37;
  const std::vector<std::uint16_t> ones(kElements, bfloat16_of_float(1.0F));
  const std::vector<std::uint16_t> wanted(kElements, bfloat16_of_float(512.0F));
  for (const TransportKind& kind : transport_kinds()) {
    run_world(kind, 4, options(), [&](RankWorld& world) {
      Collective collective;
      collective.schedule = std::make_shared<const spec::Schedule>(exchange_of_leaves(4, 512, kElements));
      collective.dtype = DType::kBFloat16;
      TestArray input(world, DType::kBFloat16, kElements, 0);
      TestArray output(world, DType::kBFloat16, kElements, 0);
      input.fill(bytes_of(ones));
      collective.inputs.assign(512 / 4, input.buffer());
      collective.output = output.buffer();
      world.group().submit(collective).wait();
      EXPECT_EQ(output.flat(), bytes_of(wanted)) << kind.name;
      collective.reduce = ReduceOp::kMean;
      world.group().submit(collective).wait();
      EXPECT_EQ(output.flat(), bytes_of(ones)) << kind.name;
    });
  }
}

// A ring hands partial sums on in the element type: they would be rounded at each rank. A smallest value is not.
TEST(Halves, SumsThatWouldBeRoundedAtEveryHopAreRefusedAndSmallestValuesAreNot) {
  const TransportKind& kind = transport_kind(0);
  run_world(kind, 3, options(), [&](RankWorld& world) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
      TestArray array(world, dtype, 1000, 0);
      array.fill(values_as(dtype, world.rank(), 1000));
      Collective ring;
      ring.schedule = std::make_shared<const spec::Schedule>(spec::ring_all_reduce(world.size(), 1000));
      ring.dtype = dtype;
      ring.inputs = {array.buffer()};
      ring.output = array.buffer();
      for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kProduct}) {
        ring.reduce = reduce;
        const Error error = testing::error_of([&] { world.group().submit(ring).wait(); });
        EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
        EXPECT_NE(error.message().find("would round"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find(to_string(dtype)), std::string::npos) << error.message();
      }
      EXPECT_EQ(array.flat(), values_as(dtype, world.rank(), 1000)) << "nothing moved";
      ring.reduce = ReduceOp::kMin;
      world.group().submit(ring).wait();
      EXPECT_EQ(array.flat(), reference_as(dtype, world.size(), 1000, ReduceOp::kMin));
    }
  });
}

}  // namespace
}  // namespace convoy::comm

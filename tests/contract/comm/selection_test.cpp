// Choosing changes speed, never bits: every ordered algorithm over every transport, and groups that know their hosts.
#include "convoy/comm/engine/selection.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "convoy/comm/rendezvous/job.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/replica_tree.h"
#include "tests/contract/comm/reference.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

// A division of replicas among ranks on hosts.
struct Division {
  int replicas = 1;
  spec::HostOfRank hosts;
};

GroupOptions options(const spec::HostOfRank& hosts = {}, const std::string& algorithm = "auto") {
  GroupOptions chosen;
  chosen.timeout = std::chrono::seconds(30);
  chosen.chunk_bytes = 3000;
  chosen.selection.hosts = hosts;
  chosen.selection.algorithm = algorithm;
  return chosen;
}

law::Machine slow_between_hosts() {
  law::Machine machine;
  machine.inside = {2e-6, 1e-10};
  machine.between = {50e-6, 8e-9};
  return machine;
}

spec::OrderedLayout layout_of(int replicas, int ranks) { return {replicas, spec::deal_replicas(replicas, ranks)}; }

// Sums all replicas' values in place of this rank's first partial, and returns the mean.
Bytes mean_of(RankWorld& world, int replicas, std::int64_t elements) {
  const spec::OrderedLayout layout = layout_of(replicas, world.size());
  std::vector<std::vector<float>> values;
  for (int replica = 0; replica < replicas; ++replica) values.push_back(values_of<float>(replica, elements));
  std::vector<TestArray> inputs;
  for (const spec::ReplicaRange part :
       spec::maximal_subtrees(replicas, layout.owners[static_cast<std::size_t>(world.rank())])) {
    inputs.emplace_back(world, DType::kFloat32, elements, world.rank() % 3);
    inputs.back().fill(bytes_of(tree_reference(values, ReduceOp::kSum, static_cast<std::size_t>(part.begin),
                                               static_cast<std::size_t>(part.end))));
  }
  std::vector<Buffer> buffers;
  for (const TestArray& input : inputs) buffers.push_back(input.buffer());
  ordered_all_reduce_async(world.group(), layout, buffers, buffers[0], DType::kFloat32, ReduceOp::kMean).wait();
  return inputs[0].flat();
}

// The bytes that each rank sends in an algorithm, by its formula.
std::uint64_t formula_bytes(const std::string& algorithm, int replicas, std::int64_t elements,
                            const spec::HostOfRank& hosts, const law::Choice& choice, int rank) {
  spec::CollectiveShape shape;
  shape.ranks = static_cast<int>(hosts.size());
  shape.elements = elements;
  shape.layout = layout_of(replicas, shape.ranks);
  shape.hosts = hosts;
  shape.options.chunk_elements = choice.chunk_elements;
  const auto sent = spec::find_algorithm("all_reduce", algorithm).sent(spec::with_defaults(shape));
  return static_cast<std::uint64_t>(sent[static_cast<std::size_t>(rank)]) * sizeof(float);
}

class Choices : public ::testing::TestWithParam<int> {
 protected:
  const TransportKind& kind() const { return transport_kind(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, Choices, ::testing::Range(0, static_cast<int>(transport_kinds().size()) - 1),
                         [](const ::testing::TestParamInfo<int>& info) { return transport_kind(info.param).name; });

TEST_P(Choices, OfOrderedAlgorithmsNeverChangeABit) {
  const std::vector<Division> divisions = {{8, {0, 0, 1}},         // 3 + 3 + 2
                                           {4, {0, 0, 1, 1}},      // one each
                                           {11, {0, 0, 0, 1, 2}},  // several partials a rank
                                           {5, {0, 0}}};
  for (const Division& division : divisions) {
    const Bytes expected = bytes_of(reference<float>(division.replicas, 20011, ReduceOp::kMean));
    for (const char* algorithm : {"auto", "ordered_exchange", "ordered_direct", "ordered_hierarchical"}) {
      const int ranks = static_cast<int>(division.hosts.size());
      run_world(kind(), ranks, options(division.hosts, algorithm), [&](RankWorld& world) {
        EXPECT_EQ(mean_of(world, division.replicas, 20011), expected)
            << algorithm << ", " << division.replicas << " replicas on " << ranks << " ranks";
      });
    }
  }
}

TEST_P(Choices, OverSeveralHostsAreHierarchicalAndSendWhatTheFormulaSays) {
  const spec::HostOfRank hosts = {0, 0, 1, 1};
  const std::int64_t elements = 70000;
  const Bytes expected = bytes_of(reference<float>(7, elements, ReduceOp::kMean));
  for (const bool priced : {false, true}) {
    GroupOptions chosen = options(hosts);
    if (priced) chosen.selection.machine = slow_between_hosts();
    run_world(kind(), 4, chosen, [&](RankWorld& world) {
      EXPECT_EQ(world.group().hosts(), hosts);
      spec::CollectiveShape shape;
      shape.ranks = 4;
      shape.elements = elements;
      shape.layout = layout_of(7, 4);
      const law::Choice choice =
          world.group().selection()->choose("all_reduce", shape, DType::kFloat32, ReduceOp::kMean);
      const std::uint64_t before = world.group().sent_bytes();
      EXPECT_EQ(mean_of(world, 7, elements), expected);
      const std::uint64_t sent = world.group().sent_bytes() - before;
      EXPECT_EQ(sent, formula_bytes("ordered_hierarchical", 7, elements, hosts, choice, world.rank()));
      EXPECT_NE(sent, formula_bytes("ordered_exchange", 7, elements, hosts, {}, world.rank()));
    });
  }
}

TEST_P(Choices, ByPriceServeEveryCollective) {
  GroupOptions chosen = options({0, 1, 0, 1, 1});
  chosen.selection.machine = slow_between_hosts();
  for (const bool reproducible : {true, false}) {
    chosen.selection.reproducible = reproducible;
    run_world(kind(), 5, chosen, [&](RankWorld& world) {
      for (const std::int64_t elements : {std::int64_t{3}, std::int64_t{9001}, std::int64_t{40009}}) {
        const DType dtype = DType::kInt64;
        const Bytes sum = reference_as(dtype, 5, elements, ReduceOp::kSum);
        TestArray input(world, dtype, elements, 1);
        TestArray output(world, dtype, elements, 0);
        input.fill(values_as(dtype, world.rank(), elements));
        all_reduce_async(world.group(), input.buffer(), output.buffer(), dtype).wait();
        EXPECT_EQ(output.flat(), sum) << elements;
        const spec::ElementRange own = spec::shard_range(elements, 5, world.rank());
        TestArray shard(world, dtype, own.size(), 0);
        reduce_scatter_async(world.group(), input.buffer(), shard.buffer(), dtype).wait();
        EXPECT_EQ(shard.flat(), Bytes(sum.begin() + own.begin * 8, sum.begin() + own.end * 8)) << elements;
        std::vector<std::int64_t> parts;
        for (int rank = 0; rank < 5; ++rank) parts.push_back(spec::shard_range(elements, 5, rank).size());
        TestArray whole(world, dtype, elements, 2);
        all_gather_async(world.group(), shard.buffer(), whole.buffer(), parts, dtype).wait();
        EXPECT_EQ(whole.flat(), sum) << elements;
        broadcast_async(world.group(), input.buffer(), 3, dtype).wait();
        EXPECT_EQ(input.flat(), values_as(dtype, 3, elements)) << elements;
      }
    });
  }
}

TEST(HostsOfAGroup, AreOneForThreadsOfAProcess) {
  run_world(transport_kind(0), 3, options(), [](RankWorld& world) { EXPECT_TRUE(world.group().hosts().empty()); });
}

TEST(HostsOfAGroup, AreFoundWhenRanksMeetOrWritten) {
  for (const char* transport : {"shared_memory", "gloo"}) {
    for (const bool written : {false, true}) {
      StoreServer server("", "");
      testing::run_ranks(4, [&](int rank) {
        JobEnvironment job;
        job.rank = rank;
        job.world_size = 4;
        job.store_address = server.address();
        job.token = server.token();
        const auto store = connect_store(job, std::chrono::seconds(10));
        GroupOptions chosen = options(written ? spec::HostOfRank{0, 0, 1, 1} : spec::HostOfRank{});
        if (rank == 0) chosen.selection.machine = slow_between_hosts();
        const auto group = join_group(job, *store, chosen, {transport, {}});
        EXPECT_EQ(spec::ranks_by_host(4, group->hosts()).size(), written ? 2u : 1u) << transport;
        spec::CollectiveShape shape;
        shape.ranks = 4;
        shape.elements = 1 << 20;
        const law::Choice choice = group->selection()->choose("all_reduce", shape, DType::kFloat32, ReduceOp::kSum);
        EXPECT_EQ(choice.algorithm, written ? "ordered_hierarchical" : "ordered_exchange") << transport;
        // All ranks go by rank 0's machine, but for those that share memory on one host.
        EXPECT_EQ(choice.seconds > 0, written || std::string(transport) == "gloo") << transport;
        std::vector<float> values(1 << 20, static_cast<float>(rank + 1));
        const Buffer buffer{std::span<float>(values)};
        all_reduce_async(*group, buffer, buffer, DType::kFloat32).wait();
        EXPECT_EQ(values, std::vector<float>(1 << 20, 10.0F)) << transport;
        barrier(*group);
        if (rank != 0) return;
        EXPECT_FALSE(store->try_get("group/world/1/topology/0").has_value()) << "the name can be used anew";
      });
    }
  }
}

TEST(HostsOfAGroup, AreRefusedForAnotherNumberOfRanks) {
  JobEnvironment job;
  job.world_size = 2;
  MemoryStore store;
  const Error error = testing::error_of([&] { join_group(job, store, options({0, 0, 1}), {"gloo", {}}); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(error.message().find("hosts of 3 ranks are named, there are 2"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace convoy::comm

// Every algorithm of the registry on every transport, against a serial reference.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "convoy/spec/collectives/registry.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

using Numbers = std::vector<std::int64_t>;

// Values that differ by rank, input and element; sums of them wrap round, in any order alike.
std::int64_t value(int rank, int input, std::int64_t element) {
  return (rank + 1) * 1000003 + input * 7919 + element * element * 31;
}

// What a rank's output holds by the definition of the collective.
Numbers expected(const spec::Schedule& schedule, const spec::CollectiveShape& shape, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  Numbers output;
  const auto sum = [&](std::int64_t element) {
    std::int64_t total = 0;
    for (int from = 0; from < shape.ranks; ++from) {
      for (int k = 0; k < schedule.inputs[static_cast<std::size_t>(from)]; ++k) total += value(from, k, element);
    }
    return total;
  };
  std::int64_t begin = 0;
  for (std::size_t before = 0; before < r; ++before) begin += schedule.output_elements[before];
  if (schedule.collective == "all_reduce" || (schedule.collective == "reduce" && rank == shape.root)) {
    for (std::int64_t e = 0; e < schedule.elements; ++e) output.push_back(sum(e));
  } else if (schedule.collective == "reduce_scatter") {
    for (std::int64_t e = 0; e < schedule.output_elements[r]; ++e) output.push_back(sum(begin + e));
  } else if (schedule.collective == "broadcast") {
    for (std::int64_t e = 0; e < schedule.elements; ++e) output.push_back(value(shape.root, 0, e));
  } else if (schedule.collective == "scatter") {
    for (std::int64_t e = 0; e < schedule.output_elements[r]; ++e) output.push_back(value(shape.root, 0, begin + e));
  } else if (schedule.collective == "all_gather" || (schedule.collective == "gather" && rank == shape.root)) {
    for (int from = 0; from < shape.ranks; ++from) {
      for (std::int64_t e = 0; e < shape.parts[static_cast<std::size_t>(from)]; ++e) {
        output.push_back(value(from, 0, e));
      }
    }
  } else if (schedule.collective == "all_to_all") {
    for (int from = 0; from < shape.ranks; ++from) {
      const Numbers& row = shape.counts[static_cast<std::size_t>(from)];
      const std::int64_t first = std::accumulate(row.begin(), row.begin() + rank, std::int64_t{0});
      for (std::int64_t e = 0; e < row[r]; ++e) output.push_back(value(from, 0, first + e));
    }
  }
  return output;
}

void run_algorithm(RankWorld& world, const spec::Algorithm& algorithm, std::int64_t elements, bool in_place) {
  spec::CollectiveShape shape;
  shape.ranks = world.size();
  shape.elements = algorithm.name == "bruck" ? elements / 16 * world.size() : elements;
  shape.root = world.size() / 2;
  shape.options.chunk_elements = 1 + elements / 5;
  for (int rank = 0; rank < world.size(); ++rank) shape.hosts.push_back(rank / 3);
  if (algorithm.ordered) shape.layout = {world.size() + 2, spec::deal_replicas(world.size() + 2, world.size())};
  shape = spec::with_defaults(shape);
  Collective collective;
  collective.schedule =
      std::make_shared<const spec::Schedule>(spec::build(algorithm.collective, algorithm.name, shape));
  const spec::Schedule& schedule = *collective.schedule;
  const auto me = static_cast<std::size_t>(world.rank());
  collective.dtype = DType::kInt64;
  const auto make = [&](std::int64_t count) {
    auto* data = reinterpret_cast<std::int64_t*>(world.memory(static_cast<std::size_t>(count) * 8));
    return std::span<std::int64_t>(data, static_cast<std::size_t>(count));
  };
  std::span<std::int64_t> output;
  for (int k = 0; k < schedule.inputs[me]; ++k) {
    const std::span<std::int64_t> input = make(schedule.input_elements[me]);
    for (std::size_t e = 0; e < input.size(); ++e) {
      input[e] = value(world.rank(), k, static_cast<std::int64_t>(e));
    }
    collective.inputs.emplace_back(input);
    if (in_place && k == 0) output = input;
  }
  if (output.empty()) output = make(schedule.output_elements[me]);
  collective.output = Buffer(output);
  const std::uint64_t before = world.group().sent_bytes();
  world.group().submit(collective).wait();
  EXPECT_EQ(world.group().sent_bytes() - before, 8u * static_cast<std::uint64_t>(algorithm.sent(shape)[me]));
  EXPECT_EQ(Numbers(output.begin(), output.end()), expected(schedule, shape, world.rank()))
      << algorithm.collective << " " << algorithm.name << " of " << elements << " on rank " << world.rank();
}

class Algorithms : public ::testing::TestWithParam<int> {};

TEST_P(Algorithms, GiveWhatTheirCollectiveIsByDefinition) {
  GroupOptions options;
  options.timeout = std::chrono::seconds(60);
  const TransportKind& kind = transport_kind(GetParam());
  // Every message costs much there, and schedules are the same everywhere: fewer of them will do.
  const bool slow = kind.medium == TransportKind::Medium::kGloo || kind.in_process.copy_bytes != 0;
  const std::vector<int> worlds = slow ? std::vector<int>{2, 5} : std::vector<int>{1, 2, 3, 4, 5, 7, 8};
  const std::vector<std::int64_t> sizes =
      slow ? std::vector<std::int64_t>{0, 3, 1023} : std::vector<std::int64_t>{0, 1, 3, 1023, 9001};
  for (const int ranks : worlds) {
    run_world(kind, ranks, options, [&](RankWorld& world) {
      for (const spec::Algorithm& algorithm : spec::algorithms()) {
        for (const std::int64_t elements : sizes) {
          const bool may = algorithm.collective == "all_reduce" || algorithm.collective == "broadcast";
          run_algorithm(world, algorithm, elements, false);
          if (may) run_algorithm(world, algorithm, elements, true);
        }
      }
    });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Algorithms, all_transport_kinds(), [](const auto& info) {
  return transport_kind(info.param).name;
});

}  // namespace
}  // namespace convoy::comm

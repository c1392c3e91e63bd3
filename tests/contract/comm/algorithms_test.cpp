// Every algorithm of the registry on every transport, against a serial reference.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "convoy/spec/collectives/registry.h"
#include "tests/contract/comm/by_definition.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

void run_algorithm(RankWorld& world, const spec::Algorithm& algorithm, std::int64_t elements, bool in_place) {
  const spec::CollectiveShape shape = shape_of(algorithm, world.size(), elements);
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

// Whether the output may be the input's memory.
bool takes_place(const spec::Algorithm& algorithm) {
  return algorithm.collective == "all_reduce" || algorithm.collective == "broadcast";
}

class Algorithms : public ::testing::TestWithParam<int> {};

TEST_P(Algorithms, GiveWhatTheirCollectiveIsByDefinition) {
  GroupOptions options;
  options.timeout = std::chrono::seconds(60);
  const TransportKind& kind = transport_kind(GetParam());
  // Copies of a thousand bytes and several interfaces are there for the ways of messages, not for their number.
  const bool tiny = kind.in_process.copy_bytes != 0 || kind.interfaces.size() > 1;
  const std::vector<int> worlds = tiny ? std::vector<int>{2, 5} : std::vector<int>{1, 2, 3, 4, 5, 7, 8};
  const std::vector<std::int64_t> sizes =
      tiny ? std::vector<std::int64_t>{0, 3, 1023} : std::vector<std::int64_t>{0, 1, 3, 1023, 9001};
  for (const int ranks : worlds) {
    run_world(kind, ranks, options, [&](RankWorld& world) {
      for (const spec::Algorithm& algorithm : spec::algorithms()) {
        for (const std::int64_t elements : sizes) {
          run_algorithm(world, algorithm, elements, false);
          if (takes_place(algorithm)) run_algorithm(world, algorithm, elements, true);
        }
        // Many chunks of every transport's, and whole pages that peers store into.
        if (!tiny && ranks <= 4) run_algorithm(world, algorithm, 65537, ranks % 2 == 0 && takes_place(algorithm));
      }
    });
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Algorithms, all_transport_kinds(),
                         [](const auto& info) { return transport_kind(info.param).name; });

}  // namespace
}  // namespace convoy::comm

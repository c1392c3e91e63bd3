// Ten thousand random operations on many worlds: several groups of the same ranks, several operations in flight in each,
// waited for in any order. And counts that do not fit into 32 bits.
#include "convoy/base/random.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <vector>

#include "convoy/base/files.h"
#include "convoy/spec/collectives/registry.h"
#include "convoy/spec/schedule/validate.h"
#include "tests/contract/comm/by_definition.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

constexpr int kWorlds = 25;
constexpr int kGroups = 2;
constexpr int kOperations = 200;  // in each group of each world: 10,000 in all

// An operation under way, with what it must give.
struct Flight {
  Work work;
  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::int64_t> output;
  Numbers wanted;
  std::string what;
};

// The same on every rank, since all draw from the same stream.
struct Drawn {
  const spec::Algorithm* algorithm = nullptr;
  std::int64_t elements = 0;
  int group = 0;
  bool in_place = false;
};

Drawn draw(RandomStream& random) {
  const auto all = spec::algorithms();
  Drawn drawn;
  drawn.algorithm = &all[random.below(all.size())];
  const std::int64_t most = std::int64_t{1} << random.below(13);
  drawn.elements = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
  drawn.group = static_cast<int>(random.below(kGroups));
  drawn.in_place = random.below(2) == 0;
  return drawn;
}

std::unique_ptr<Flight> begin(Group& group, const Drawn& drawn) {
  const spec::CollectiveShape shape = shape_of(*drawn.algorithm, group.size(), drawn.elements);
  auto flight = std::make_unique<Flight>();
  Collective collective;
  collective.schedule =
      std::make_shared<const spec::Schedule>(spec::build(drawn.algorithm->collective, drawn.algorithm->name, shape));
  const spec::Schedule& schedule = *collective.schedule;
  const auto me = static_cast<std::size_t>(group.rank());
  collective.dtype = DType::kInt64;
  flight->what = std::string(schedule.collective) + " " + schedule.algorithm + " of " + std::to_string(drawn.elements);
  flight->wanted = expected(schedule, shape, group.rank());
  flight->output.resize(static_cast<std::size_t>(schedule.output_elements[me]));
  for (int k = 0; k < schedule.inputs[me]; ++k) {
    std::vector<std::int64_t>& input =
        flight->inputs.emplace_back(static_cast<std::size_t>(schedule.input_elements[me]));
    for (std::size_t e = 0; e < input.size(); ++e) input[e] = value(group.rank(), k, static_cast<std::int64_t>(e));
  }
  const bool may = schedule.collective == "all_reduce" || schedule.collective == "broadcast";
  const bool in_place = drawn.in_place && may && !flight->inputs.empty();
  if (in_place) flight->output = flight->inputs.front();
  for (std::size_t k = 0; k < flight->inputs.size(); ++k) {
    collective.inputs.emplace_back(std::span<std::int64_t>(in_place && k == 0 ? flight->output : flight->inputs[k]));
  }
  collective.output = Buffer(std::span<std::int64_t>(flight->output));
  flight->work = group.submit(std::move(collective));
  return flight;
}

void end(Flight& flight) {
  flight.work.wait();
  ASSERT_EQ(flight.output, flight.wanted) << flight.what;
}

void run_rank(std::vector<std::unique_ptr<Group>>& groups, std::uint64_t seed) {
  RandomStream random(seed);
  // Which operation is waited for when is this rank's own affair.
  RandomStream own(seed * 1000 + static_cast<std::uint64_t>(groups.front()->rank()));
  std::deque<std::unique_ptr<Flight>> flights;
  for (int done = 0; done < kGroups * kOperations; ++done) {
    const Drawn drawn = draw(random);
    flights.push_back(begin(*groups[static_cast<std::size_t>(drawn.group)], drawn));
    while (flights.size() > own.below(8)) {
      const std::size_t at = own.below(flights.size());
      end(*flights[at]);
      flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const auto& flight : flights) end(*flight);
}

std::size_t count_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

TEST(TenThousandRandomOperations, GiveWhatTheyAreByDefinitionAndLeaveNothingBehind) {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  for (int number = 0; number < kWorlds; ++number) {
    const int ranks = 1 + number % 8;
    const bool shared = number % 2 == 1;
    MemoryStore store;
    std::vector<std::vector<std::unique_ptr<Transport>>> transports(kGroups);
    std::vector<std::unique_ptr<SharedArena>> arenas(static_cast<std::size_t>(ranks));
    for (auto& arena : arenas) arena = std::make_unique<SharedArena>(std::size_t{64} << 20);
    for (auto& of_group : transports) {
      if (!shared) of_group = make_in_process_transports(ranks);
    }
    for (const std::exception_ptr& thrown : testing::collect_ranks(ranks, [&](int rank) {
           std::vector<std::unique_ptr<Group>> groups;
           for (int g = 0; g < kGroups; ++g) {
             GroupOptions options;
             options.name = "group" + std::to_string(g);
             SharedMemoryOptions memory;
             memory.group = options.name;
             memory.limit = std::chrono::seconds(20);
             memory.arena = arenas[static_cast<std::size_t>(rank)].get();
             auto& made = transports[static_cast<std::size_t>(g)];
             groups.push_back(make_group(shared ? make_shared_memory_transport(store, rank, ranks, memory)
                                                : std::move(made[static_cast<std::size_t>(rank)]),
                                         options));
           }
           run_rank(groups, 77 + static_cast<std::uint64_t>(number));
         })) {
      if (thrown) std::rethrow_exception(thrown);
    }
    if (HasFatalFailure()) return;
    for (const auto& arena : arenas) EXPECT_EQ(arena->used(), 0U) << "world " << number;
    arenas.clear();
    // The first world makes what the process has once.
    if (number == 1) {
      threads = count_in("/proc/self/task");
      descriptors = count_in("/proc/self/fd");
    } else if (number > 1) {
      EXPECT_EQ(count_in("/proc/self/task"), threads) << "world " << number;
      EXPECT_EQ(count_in("/proc/self/fd"), descriptors) << "world " << number;
    }
  }
}

TEST(LargeCounts, OfSchedulesAreRight) {
  const std::int64_t elements = (std::int64_t{3} << 31) + 4097;
  for (const spec::Algorithm& algorithm : spec::algorithms()) {
    if (algorithm.collective == "barrier") continue;
    spec::CollectiveShape shape;
    shape.ranks = 3;
    shape.elements = algorithm.name == "bruck" && algorithm.collective == "all_to_all" ? elements / 3 * 3 : elements;
    shape.hosts = {0, 0, 1};
    shape = spec::with_defaults(shape);
    const spec::Schedule schedule = spec::build(algorithm.collective, algorithm.name, shape);
    EXPECT_EQ(spec::validate(schedule).sent_elements, algorithm.sent(shape))
        << algorithm.collective << " " << algorithm.name;
  }
}

TEST(LargeCounts, AreBroadcastForReal) {
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 4097;
  const auto free_bytes =
      static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (free_bytes < 3 * kBytes)
    GTEST_SKIP() << "needs " << 3 * kBytes << " bytes of memory, " << free_bytes << " are free";
  auto transports = make_in_process_transports(2);
  for (const std::exception_ptr& thrown : testing::collect_ranks(2, [&](int rank) {
         const auto group = make_group(std::move(transports[static_cast<std::size_t>(rank)]), GroupOptions{});
         const auto memory = std::make_unique_for_overwrite<std::uint8_t[]>(kBytes);
         if (rank == 0) std::memset(memory.get(), 1, kBytes);
         memory[kBytes - 1] = rank == 0 ? 42 : 0;
         const std::span<std::uint8_t> whole(memory.get(), kBytes);
         broadcast_async(*group, Buffer(whole), 0, DType::kUInt8).wait();
         EXPECT_EQ(memory[kBytes - 1], 42);
         EXPECT_EQ(memory[std::size_t{1} << 31], 1);
         EXPECT_EQ(memory[0], 1);
       })) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

}  // namespace
}  // namespace convoy::comm

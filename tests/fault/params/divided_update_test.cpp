// Ranks are killed in the middle of divided updates: those that are left finish the update, with no wrong bit.
#include "convoy/params/update/divided_update.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "convoy/params/update/update_kernels.h"
#include "tests/support/rank_processes.h"
#include "tests/support/shared_array.h"

namespace convoy::params {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RankContext;
using testing::RankProcesses;
using testing::RankProcessOptions;
using testing::SharedArray;

// Three parameters, of which the second is not used in every second update.
constexpr std::int64_t kElements = 200'000;
const std::vector<FlatSlice> kSlots = {{0, 0, 120'000}, {1, 120'000, 30'000}, {2, 150'000, 50'000}};
constexpr int kSlotCount = 3;
constexpr int kMostRanks = 4;
constexpr std::int64_t kUpdates = 400;

// Values and moments, wherever they lie.
struct State {
  float* values;
  float* first;
  float* second;
};

float start_value(std::int64_t i) { return static_cast<float>(i % 1013) * 1e-3F - 0.4F; }

UpdateOrder order_of(std::int64_t number) {
  UpdateOrder order;
  order.number = number;
  order.scale = {3.0, number % 3 == 0 ? 0.5 : 1.0};
  order.rate = 0.01 / static_cast<double>(number);
  order.used = {true, number % 2 == 0, true};
  return order;
}

// Adam's update of a slice, with gradients that belong to the update and the element.
void update_slice(const State& state, const UpdateOrder& order, const FlatSlice& slice) {
  std::vector<float> sums(static_cast<std::size_t>(slice.count));
  for (std::int64_t i = 0; i < slice.count; ++i) {
    sums[static_cast<std::size_t>(i)] = static_cast<float>((slice.begin + i) * 7 % 101 + order.number % 11) * 0.01F - 0.5F;
  }
  AdamCoefficients adam;
  adam.rate = order.rate;
  adam.step = slice.slot == 1 ? order.number / 2 : order.number;
  adam_update<float>(state.values + slice.begin, sums.data(), state.first + slice.begin, state.second + slice.begin,
                     slice.count, order.scale, adam);
}

// The state after so many updates by one process.
std::vector<float> undisturbed(std::int64_t updates) {
  std::vector<float> all(3 * kElements, 0.0F);
  const State state{all.data(), all.data() + kElements, all.data() + 2 * kElements};
  for (std::int64_t i = 0; i < kElements; ++i) state.values[i] = start_value(i);
  for (std::int64_t number = 1; number <= updates; ++number) {
    const UpdateOrder order = order_of(number);
    for (const FlatSlice& slot : kSlots) {
      if (order.used[slot.slot]) update_slice(state, order, slot);
    }
  }
  return all;
}

std::vector<std::vector<FlatSlice>> shares_of(int ranks) {
  std::vector<std::vector<FlatSlice>> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t begin = kElements * rank / ranks;
    const std::int64_t end = kElements * (rank + 1) / ranks;
    shares.emplace_back();
    for (const FlatSlice& slot : kSlots) {
      const std::int64_t from = std::max(begin, slot.begin);
      const std::int64_t to = std::min(end, slot.begin + slot.count);
      if (from < to) shares.back().push_back({slot.slot, from, to - from});
    }
  }
  return shares;
}

// What a trial wants and finds; in memory that test and ranks share.
struct Trial {
  // Each victim ends itself in this update, having changed half of its block of this number; 0: it is killed from outside.
  std::int64_t update;
  std::int64_t block;
  bool victims[kMostRanks];
  // How many ranks have begun to train.
  std::atomic<int> training;
  // Set once the victims are certain to run no more.
  std::atomic<bool> fenced;
  // By rank: how many updates were finished in the end, how many blocks the first victim had done, and how many elements
  // differ from those of an undisturbed process.
  struct Found {
    std::int64_t done;
    std::int64_t victim_blocks;
    std::int64_t wrong;
    bool reported;
  } found[kMostRanks];
};

void train(const RankContext& context, Trial& trial) {
  const int ranks = context.group.size();
  std::vector<std::shared_ptr<comm::HostMemory>> memory;
  std::vector<std::byte*> stretches;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(comm::HostMemory::join(context.group, kElements * sizeof(float)));
    stretches.push_back(memory.back()->data());
  }
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(stretches[i]); };
  const State state{floats(0), floats(1), floats(2)};
  if (context.rank == 0) {
    for (std::int64_t i = 0; i < kElements; ++i) state.values[i] = start_value(i);
  }
  DividedUpdate division(context.group, kSlotCount, sizeof(float), stretches);
  division.set_shares(shares_of(ranks));
  comm::barrier(context.group);
  // All have left the barrier before the first is killed.
  trial.training.fetch_add(1);
  while (trial.training.load() < ranks) std::this_thread::sleep_for(std::chrono::microseconds(100));

  const bool dies = trial.victims[context.rank] && trial.update > 0;
  std::int64_t block_number = 0;
  const UpdateBlock update = [&](const UpdateOrder& order, const FlatSlice& block) {
    if (dies && order.number == trial.update && block_number++ == trial.block) {
      FlatSlice half = block;
      half.count /= 2;
      update_slice(state, order, half);
      ::raise(SIGKILL);
    }
    update_slice(state, order, block);
  };
  // Nobody has to wait for the deadline once the test has seen a victim's end.
  std::jthread watch([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && !trial.fenced.load()) std::this_thread::sleep_for(milliseconds(1));
    if (trial.fenced.load()) context.group.abort(Error(ErrorCode::kPeerLost, "a rank was killed"));
  });
  std::int64_t number = 1;
  try {
    for (; number <= kUpdates; ++number) division.run(order_of(number), update);
    return;
  } catch (const Error&) {
    while (!trial.fenced.load()) std::this_thread::sleep_for(milliseconds(1));
  }
  std::vector<int> lost;
  for (int rank = 0; rank < ranks; ++rank) {
    if (trial.victims[rank]) lost.push_back(rank);
  }
  Trial::Found& found = trial.found[context.rank];
  found.victim_blocks = division.blocks_done(lost.front());
  // One survivor may not have heard that the last update was finished, which another did before it went on.
  std::int64_t done = number - 1;
  while (const auto settled = division.settle(done + 1, lost, update, seconds(10))) {
    const UpdateOrder asked = order_of(++done);
    const bool same = settled->number == done && settled->used == asked.used && settled->rate == asked.rate &&
                      settled->scale.count == asked.scale.count && settled->scale.clip == asked.scale.clip;
    if (!same) ++found.wrong;
  }
  const std::vector<float> expected = undisturbed(done);
  for (std::size_t i = 0; i < 3; ++i) {
    const float* const ours = floats(i);
    for (std::int64_t e = 0; e < kElements; ++e) {
      const float& theirs = expected[i * kElements + static_cast<std::size_t>(e)];
      if (std::memcmp(ours + e, &theirs, sizeof(float)) != 0) ++found.wrong;
    }
  }
  found.done = done;
  found.reported = true;
}

// Runs one trial; returns what the survivors found.
std::vector<Trial::Found> run_trial(int ranks, const std::vector<int>& victims, std::int64_t update, std::int64_t block,
                                    Duration kill_after) {
  SharedArray<Trial> shared(1);
  Trial& trial = shared[0];
  trial.update = update;
  trial.block = block;
  for (const int victim : victims) trial.victims[victim] = true;
  RankProcessOptions options;
  options.ranks = ranks;
  RankProcesses processes(options, [&](const RankContext& context) { train(context, trial); });
  if (update == 0) {
    EXPECT_TRUE(processes.all_started());
    const Deadline deadline(system_clock(), seconds(20));
    while (trial.training.load() < ranks && !deadline.expired()) std::this_thread::sleep_for(milliseconds(1));
    system_clock().sleep_for(kill_after);
    for (const int victim : victims) processes.signal(victim, SIGKILL);
  }
  for (const int victim : victims) EXPECT_EQ(processes.ending(victim).code, -2) << "a killed rank says nothing";
  trial.fenced.store(true);
  std::vector<Trial::Found> found;
  for (int rank = 0; rank < ranks; ++rank) {
    if (trial.victims[rank]) continue;
    const auto ending = processes.ending(rank);
    EXPECT_EQ(ending.code, 100) << "rank " << rank << ": " << ending.message;
    found.push_back(trial.found[rank]);
  }
  return found;
}

TEST(DividedUpdate, IsFinishedBySurvivorsOfAKillInTheMiddleOfABlock) {
  std::mt19937 random(7);
  int middle = 0;
  for (int round = 0; round < 160; ++round) {
    const int ranks = 2 + round % 3;
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    // Now and then two of four are lost at once.
    const std::size_t victims = ranks == 4 && round % 4 == 0 ? 2 : 1;
    const std::int64_t update = 1 + static_cast<std::int64_t>(random() % 6);
    const std::int64_t block = static_cast<std::int64_t>(1 + random() % 17);
    const auto found =
        run_trial(ranks, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(victims)}, update, block, Duration{});
    for (const Trial::Found& one : found) {
      ASSERT_TRUE(one.reported) << "round " << round;
      EXPECT_EQ(one.done, update) << "an update that a rank has begun is finished";
      EXPECT_EQ(one.wrong, 0) << "round " << round << ", " << ranks << " ranks, update " << update;
    }
    if (found.front().victim_blocks > 0) ++middle;
    if (HasFailure()) return;
  }
  EXPECT_GE(middle, 150) << "victims that were in the middle of their share";
}

TEST(DividedUpdate, IsFinishedOrLeftAloneAfterAKillAtAnyMoment) {
  std::mt19937 random(8);
  int middle = 0;
  for (int round = 0; round < 50; ++round) {
    const int ranks = 2 + round % 3;
    const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const auto found = run_trial(ranks, {victim}, 0, 0, std::chrono::microseconds(1000 + random() % 20'000));
    for (const Trial::Found& one : found) {
      ASSERT_TRUE(one.reported) << "round " << round << ": no kill came before the last update";
      EXPECT_EQ(one.done, found.front().done) << "survivors agree how many updates count";
      EXPECT_EQ(one.wrong, 0) << "round " << round << ", " << ranks << " ranks, update " << one.done;
    }
    if (found.front().victim_blocks > 0) ++middle;
    if (HasFailure()) return;
  }
  EXPECT_GE(middle, 15) << "victims that were in the middle of their share, or at its end";
}

}  // namespace
}  // namespace convoy::params

// A rank ends while it updates its share: the others finish the step, and go on from the state that an undisturbed
// run has then, moments included.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "convoy/base/hash.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "tests/support/groups.h"
#include "tests/support/rank_processes.h"
#include "tests/support/shared_array.h"

namespace convoy::parallel {
namespace {

using std::chrono::milliseconds;
using testing::RankContext;
using testing::RankProcesses;
using testing::RankProcessOptions;
using testing::SharedArray;

constexpr int kReplicas = 4;
constexpr int kSteps = 12;

struct WideImpl : torch::nn::Module {
  WideImpl() {
    hidden = register_module("hidden", torch::nn::Linear(64, 700));
    output = register_module("output", torch::nn::Linear(700, 4));
  }
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::tanh(hidden(x))); }
  torch::nn::Linear hidden{nullptr}, output{nullptr};
};

params::Batch batch_of(std::int64_t step, int replica) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step * 100 + replica));
  torch::Tensor x = torch::empty({4, 64});
  torch::Tensor y = torch::empty({4}, torch::kInt64);
  x.normal_(0, 1, generator);
  y.random_(0, 4, generator);
  return {x, y};
}

// A rank's model, strategy and optimizer.
struct Training {
  explicit Training(comm::Group& group) {
    torch::manual_seed(6);
    model = params::make_classifier(std::make_shared<WideImpl>());
    DataParallelOptions options;
    options.replicas = kReplicas;
    options.divide_update = true;
    strategy = std::make_unique<DataParallel>(*model, group, options);
    params::OptimizerOptions adam;
    adam.kind = "adam";
    optimizer = std::make_unique<params::Optimizer>(strategy->space(), adam);
  }
  void step(std::int64_t number) {
    std::vector<std::vector<params::Batch>> batches;
    for (int replica = strategy->replicas().begin; replica < strategy->replicas().end; ++replica) {
      batches.push_back({batch_of(number, replica)});
    }
    optimizer->update(strategy->step(number, batches).gradient, 0.01);
  }
  // A digest of parameters, moments and counts of updates, without the group.
  std::string digest() {
    Hasher hasher;
    for (const spec::StateEntry& entry : optimizer->state()) {
      hasher.update(entry.data, static_cast<std::size_t>(entry.count) * element_bytes(entry.dtype));
    }
    for (const params::ParameterSlot& slot : strategy->space().slots()) {
      hasher.update(slot.tensor.data_ptr(), slot.tensor.nbytes());
    }
    return hasher.hex();
  }
  std::unique_ptr<params::Model> model;
  std::unique_ptr<DataParallel> strategy;
  std::unique_ptr<params::Optimizer> optimizer;
};

// The digests after 0, 1, 2 ... steps of an undisturbed rank.
std::vector<std::string> undisturbed(int steps) {
  std::vector<std::string> digests;
  testing::with_groups(1, [&](comm::Group& group) {
    Training alone(group);
    digests.push_back(alone.digest());
    for (int step = 0; step < steps; ++step) {
      alone.step(step);
      digests.push_back(alone.digest());
    }
  });
  return digests;
}

struct Shared {
  std::atomic<bool> fenced;
  struct Found {
    bool settled;
    int failed_step;
    char digest[64];
  } found[4];
};

// Makes this process end in the middle of its share of the next update: a page there cannot be written any more.
void forbid_a_page(Training& training, double where) {
  const auto shares = training.strategy->sums().shares;
  const auto& slices = (*shares)[static_cast<std::size_t>(training.optimizer->division()->place())];
  const params::FlatSlice& longest = *std::max_element(
      slices.begin(), slices.end(), [](const auto& x, const auto& y) { return x.count < y.count; });
  const std::int64_t element = longest.begin + static_cast<std::int64_t>(static_cast<double>(longest.count) * where);
  const auto address = reinterpret_cast<std::uintptr_t>(training.strategy->space().values().data_ptr<float>() + element);
  CONVOY_CHECK(::mprotect(reinterpret_cast<void*>(address / 4096 * 4096), 4096, PROT_READ) == 0, "a page is protected");
}

void train(const RankContext& context, int victim, int kill_step, double where, Shared& shared) {
  torch::set_num_threads(1);
  Training training(context.group);
  int step = 0;
  try {
    for (; step < kSteps; ++step) {
      // Who updates what is settled once the first step has shown the order of gradients.
      if (context.rank == victim && step == kill_step) forbid_a_page(training, where);
      training.step(step);
    }
    return;
  } catch (const Error&) {
    while (!shared.fenced.load()) std::this_thread::sleep_for(milliseconds(1));
  }
  const std::vector<int> lost = {victim};
  Shared::Found& found = shared.found[context.rank];
  found.settled = training.optimizer->settle(training.strategy->sums(), lost, std::chrono::seconds(10));
  found.failed_step = step;
  std::strncpy(found.digest, training.digest().c_str(), sizeof(found.digest) - 1);
}

TEST(Settle, FinishesTheStepOfARankThatEndedInItsUpdate) {
  // Children are forked before this process computes anything: libtorch's threads do not survive a fork.
  std::vector<std::array<int, 4>> outcomes;
  SharedArray<Shared> trials(12);
  for (int trial = 0; trial < 12; ++trial) {
    const int ranks = 2 + trial % 3;
    const int victim = trial % ranks;
    const int kill_step = 2 + trial % 4;
    Shared& shared = trials[static_cast<std::size_t>(trial)];
    RankProcessOptions options;
    options.ranks = ranks;
    RankProcesses processes(options, [&](const RankContext& context) {
      train(context, victim, kill_step, 0.05 + 0.08 * trial, shared);
    });
    EXPECT_EQ(processes.ending(victim).code, -2) << "trial " << trial;
    shared.fenced.store(true);
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const auto ending = processes.ending(rank);
      EXPECT_EQ(ending.code, 100) << "trial " << trial << ", rank " << rank << ": " << ending.message;
    }
    outcomes.push_back({ranks, victim, kill_step, trial});
  }
  const std::vector<std::string> expected = undisturbed(kSteps);
  for (const auto& [ranks, victim, kill_step, trial] : outcomes) {
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank == victim) continue;
      const Shared::Found& found = trials[static_cast<std::size_t>(trial)].found[rank];
      EXPECT_EQ(found.failed_step, kill_step) << "trial " << trial;
      EXPECT_TRUE(found.settled) << "trial " << trial;
      EXPECT_EQ(std::string(found.digest), expected[static_cast<std::size_t>(kill_step) + 1])
          << "trial " << trial << ", rank " << rank;
    }
  }
}

}  // namespace
}  // namespace convoy::parallel

// What a checkpoint must bring back: tied, frozen, tiny and empty parameters, optimizer state, the learning rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/elastic/checkpoint/safetensors.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/optimizer.h"
#include "convoy/train/trainer.h"
#include "tests/support/groups.h"

namespace convoy::train {
namespace {

using params::Batch;
using testing::with_groups;

const std::string kFolder = "run/checkpoints";

std::string bytes_of(const spec::StateEntry& entry) {
  return {reinterpret_cast<const char*>(entry.data),
          static_cast<std::size_t>(entry.count) * element_bytes(entry.dtype)};
}

// A model with its strategy and optimizer on one rank.
template <typename M>
struct Training {
  Training(comm::Group& shared, const params::OptimizerOptions& options, int replicas = 2)
      : group(shared),
        net(std::make_shared<M>()),
        model(params::make_model(net,
                                 [](M& module, const Batch& batch) {
                                   params::Loss loss;
                                   loss.sum = module.loss(batch.input);
                                   loss.count = 1;
                                   return loss;
                                 })),
        parallel(*model, group, parallel_options(replicas)),
        optimizer(parallel.space(), options) {
    optimizer.set_owner(group.rank() == 0);
  }
  static parallel::DataParallelOptions parallel_options(int replicas) {
    parallel::DataParallelOptions options;
    options.replicas = replicas;
    return options;
  }
  // One step in which replica r has the input 1 + r.
  void step(std::int64_t number) {
    std::vector<std::vector<Batch>> batches;
    for (int replica = parallel.replicas().begin; replica < parallel.replicas().end; ++replica) {
      batches.push_back({{torch::full({1}, 1.0f + static_cast<float>(replica)), {}}});
    }
    optimizer.update(parallel.step(number, batches).gradient, 0.1);
  }
  std::vector<spec::Stateful*> state() { return {&parallel, &optimizer}; }
  std::string save(Files& files, std::uint64_t steps) {
    elastic::CheckpointMeta meta;
    meta.step = steps;
    return elastic::save_checkpoint(files, group, kFolder, meta, state(), 2);
  }
  void load(Files& files) { ASSERT_TRUE(elastic::load_newest(files, group, kFolder, state())); }
  // The bytes of the parameters or moments whose names end so.
  std::map<std::string, std::string> bytes(const std::string& end) {
    std::map<std::string, std::string> found;
    for (spec::Stateful* part : state()) {
      for (const spec::StateEntry& entry : part->state()) {
        if (entry.name.ends_with(end)) found[entry.name] = bytes_of(entry);
      }
    }
    return found;
  }

  comm::Group& group;
  std::shared_ptr<M> net;
  std::unique_ptr<params::Model> model;
  parallel::DataParallel parallel;
  params::Optimizer optimizer;
};

struct TiedImpl : torch::nn::Module {
  TiedImpl() {
    first = register_parameter("first", torch::tensor({0.5f, -1.0f, 2.0f, 0.25f}));
    last = register_parameter("last", first);
  }
  torch::Tensor loss(const torch::Tensor&) { return first.sum() + (2.0 * last).sum(); }
  torch::Tensor first, last;
};

TEST(SavedState, HoldsATiedWeightOnceAndGivesItBackUnderBothNames) {
  MemoryFiles files;
  std::string path;
  params::OptimizerOptions momentum;
  momentum.momentum = 0.9;
  with_groups(2, [&](comm::Group& group) {
    Training<TiedImpl> run(group, momentum);
    run.step(0);
    const std::string saved = run.save(files, 1);
    if (group.rank() == 0) path = saved;
    Training<TiedImpl> resumed(group, momentum);
    resumed.load(files);
    EXPECT_TRUE(torch::equal(resumed.net->first, run.net->first));
    EXPECT_TRUE(torch::equal(resumed.net->last, run.net->first));
    resumed.step(1);
    run.step(1);
    EXPECT_TRUE(torch::equal(resumed.net->last, run.net->first));
    EXPECT_TRUE(torch::equal(resumed.net->last, resumed.net->first));
  });
  std::multiset<std::string> stored;
  for (const std::string& name : files.list(path)) {
    if (!name.ends_with(".safetensors")) continue;
    const elastic::SafetensorsReader reader(files, path + "/" + name);
    for (const auto& [tensor, place] : reader.tensors()) {
      stored.insert(tensor);
      EXPECT_EQ(place.elements, tensor == "optimizer/updates" ? 1 : 4) << tensor;
    }
  }
  EXPECT_EQ(stored, (std::multiset<std::string>{"optimizer/momentum/first", "optimizer/updates", "parameters/first"}));
}

// a and b are trained, a is frozen later; c never asks for a gradient.
struct LayersImpl : torch::nn::Module {
  LayersImpl() {
    a = register_parameter("a", torch::tensor({1.0f, -2.0f, 0.5f}));
    b = register_parameter("b", torch::tensor({0.25f, 3.0f}));
    c = register_parameter("c", torch::tensor({7.0f, 8.0f}), /*requires_grad=*/false);
  }
  torch::Tensor loss(const torch::Tensor& x) { return (a * a * x).sum() + (b * b * b * x).sum() + (c * x).sum(); }
  torch::Tensor a, b, c;
};

TEST(SavedState, KeepsTheMomentsOfAParameterThatWasFrozenLater) {
  params::OptimizerOptions momentum;
  momentum.momentum = 0.9;
  momentum.weight_decay = 0.01;
  params::OptimizerOptions adam;
  adam.kind = "adam";
  params::OptimizerOptions adamw = momentum;
  adamw.kind = "adamw";
  for (const params::OptimizerOptions& options : {momentum, adam, adamw}) {
    MemoryFiles files;
    with_groups(2, [&](comm::Group& group) {
      Training<LayersImpl> whole(group, options);
      whole.step(0);
      whole.step(1);
      const auto trained = whole.bytes("/a");
      ASSERT_EQ(trained.size(), options.kind == "sgd" ? 2u : 3u) << "the parameter and its moments";
      whole.net->a.set_requires_grad(false);
      whole.step(2);
      whole.save(files, 3);
      whole.net->a.set_requires_grad(true);
      whole.step(3);

      Training<LayersImpl> resumed(group, options);
      const auto untrained = resumed.bytes("/c");
      resumed.load(files);
      EXPECT_EQ(resumed.bytes("/a"), trained) << options.kind << ": bitwise kept, frozen, saved and loaded";
      EXPECT_EQ(resumed.bytes("/c"), untrained) << options.kind << ": nothing but its values";
      resumed.step(3);
      for (const std::string name : {"/a", "/b", "/c", "/updates"}) {
        EXPECT_EQ(resumed.bytes(name), whole.bytes(name)) << options.kind << name;
      }
      const auto* updates = reinterpret_cast<const std::int64_t*>(resumed.optimizer.state().back().data);
      EXPECT_EQ(std::vector<std::int64_t>(updates, updates + 3), (std::vector<std::int64_t>{3, 4, 0}));
      EXPECT_NE(whole.bytes("/a"), trained);
    });
  }
}

struct TinyImpl : torch::nn::Module {
  TinyImpl() {
    front = register_parameter("front", torch::tensor({1.0f, 2.0f}));
    empty = register_parameter("empty", torch::zeros({2, 0, 3}));
    back = register_parameter("back", torch::tensor({3.0f}));
  }
  // A gradient of 1 whatever the input.
  torch::Tensor loss(const torch::Tensor&) { return front.sum() + empty.sum() + back.sum(); }
  torch::Tensor front, empty, back;
};

TEST(SavedState, HasFewerElementsThanRanksAndAnEmptyParameter) {
  MemoryFiles files;
  const auto expect_values = [](TinyImpl& net, float moved) {
    EXPECT_FLOAT_EQ(net.front[0].item<float>(), 1.0f - moved);
    EXPECT_FLOAT_EQ(net.front[1].item<float>(), 2.0f - moved);
    EXPECT_FLOAT_EQ(net.back.item<float>(), 3.0f - moved);
    EXPECT_EQ(net.empty.sizes().vec(), (std::vector<std::int64_t>{2, 0, 3}));
  };
  with_groups(4, [&](comm::Group& group) {
    Training<TinyImpl> run(group, {}, 4);
    run.step(0);
    expect_values(*run.net, 0.1f);
    run.save(files, 1);
  });
  for (const int ranks : {4, 1, 3}) {
    with_groups(ranks, [&](comm::Group& group) {
      Training<TinyImpl> resumed(group, {}, 4);
      resumed.load(files);
      expect_values(*resumed.net, 0.1f);
      resumed.step(1);
      expect_values(*resumed.net, 0.2f);
    });
  }
}

TEST(SavedState, GivesEachReplicaItsOwnBuffersBackOnAnotherNumberOfRanks) {
  struct CountedImpl : torch::nn::Module {
    CountedImpl() {
      w = register_parameter("w", torch::ones({1}));
      seen = register_buffer("seen", torch::full({1}, 7.0f));
    }
    torch::Tensor loss(const torch::Tensor& x) {
      const torch::NoGradGuard no_grad;
      seen += x;
      const torch::AutoGradMode grad(true);
      return (w * x).sum();
    }
    torch::Tensor w, seen;
  };
  MemoryFiles files;
  with_groups(2, [&](comm::Group& group) {
    Training<CountedImpl> run(group, {}, 3);
    run.step(0);
    run.step(1);
    run.save(files, 2);
  });
  with_groups(3, [&](comm::Group& group) {
    Training<CountedImpl> resumed(group, {}, 3);
    resumed.load(files);
    const auto buffers = resumed.bytes("/seen");
    ASSERT_EQ(buffers.size(), 1u);
    const auto* value = reinterpret_cast<const float*>(buffers.begin()->second.data());
    EXPECT_EQ(*value, 7.0f + 2.0f * static_cast<float>(1 + group.rank())) << buffers.begin()->first;
  });
}

// A single weight that goes down by the learning rate, in the words of a trainer.
struct SlopeImpl : torch::nn::Module {
  SlopeImpl() { w = register_parameter("w", torch::zeros({1})); }
  torch::Tensor w;
};

std::unique_ptr<params::Model> make_slope() {
  return params::make_model(std::make_shared<SlopeImpl>(), [](SlopeImpl& net, const Batch& batch) {
    return params::Loss{(net.w * batch.input).sum(), batch.input.size(0), {}};
  });
}

records::StepBatch slope_input(const Trainer& trainer, std::int64_t step, spec::ReplicaRange replicas) {
  records::StepBatch input;
  input.step = step;
  for (int replica = replicas.begin; replica < replicas.end; ++replica) {
    records::Batch batch;
    batch.sample_ids = trainer.plan().replica_samples(step, replica);
    batch.values.assign(batch.sample_ids.size(), 1.0f);
    batch.labels.assign(batch.sample_ids.size(), 0);
    batch.sample_shape = {1};
    input.replicas.push_back({replica, {batch}});
  }
  return input;
}

TEST(Trainer, GoesOnWithTheRateAtWhichTheRunWasSaved) {
  spec::Recipe recipe;
  recipe.train.steps = 10;
  recipe.train.global_batch = 4;
  recipe.train.schedule = "linear";
  recipe.train.learning_rate = 1.0;
  recipe.replicas.count = 2;
  MemoryFiles files;
  // Trains steps [first, end) and returns their rates; loads before and saves after where asked to.
  const auto train = [&](comm::Group& group, bool load, std::int64_t end, bool save) {
    Trainer trainer(recipe, 12, group, make_slope());
    std::int64_t first = 0;
    if (load)
      first = static_cast<std::int64_t>(elastic::load_newest(files, group, kFolder, trainer.state())->meta.step);
    std::vector<double> rates;
    for (std::int64_t step = first; step < end; ++step) {
      records::StepBatch input = slope_input(trainer, step, trainer.parallel().replicas());
      rates.push_back(trainer.update(step, trainer.gradient(step, input)));
    }
    elastic::CheckpointMeta meta;
    meta.step = static_cast<std::uint64_t>(end);
    if (save) elastic::save_checkpoint(files, group, kFolder, meta, trainer.state(), 2);
    return std::pair(rates, trainer.parallel().digest());
  };
  with_groups(2, [&](comm::Group& group) {
    const auto whole = train(group, false, 10, false);
    const auto before = train(group, false, 4, true);
    const auto after = train(group, true, 10, false);
    ASSERT_EQ(before.first.size(), 4u);
    ASSERT_EQ(after.first.size(), 6u);
    for (std::size_t step = 0; step < 4; ++step) EXPECT_NEAR(before.first[step], 1.0 - 0.1 * step, 1e-12);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(after.first[i], 0.6 - 0.1 * i, 1e-12) << "neither 0.2 nor 0.7 comes first";
      EXPECT_EQ(after.first[i], whole.first[4 + i]);
    }
    EXPECT_EQ(after.second, whole.second);
  });
}

}  // namespace
}  // namespace convoy::train

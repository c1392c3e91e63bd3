// The flat space, the gradient hooks and the arena allocator: what strategies build on.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>

#include "convoy/base/error.h"
#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/params/arena_allocator.h"
#include "convoy/params/flat_space.h"
#include "convoy/params/gradient_hooks.h"
#include "convoy/params/random_scope.h"
#include "tests/support/ranks.h"

namespace convoy::params {
namespace {

// A module with a tied weight, a frozen one, and one that a forward pass may leave out.
struct TiedNetImpl : torch::nn::Module {
  TiedNetImpl() {
    a = register_parameter("a", torch::tensor({1.0f, 2.0f, 3.0f}));
    tied = register_parameter("tied", a);
    frozen = register_parameter("frozen", torch::tensor({5.0f}), /*requires_grad=*/false);
    b = register_parameter("b", torch::full({20}, 0.5f));
    empty = register_parameter("empty", torch::zeros({0, 3}));
  }
  torch::Tensor a, tied, frozen, b, empty;
};
TORCH_MODULE(TiedNet);

Loss nothing(const Batch&) { return {}; }

struct Taken final : GradientSink {
  void take(std::size_t slot, torch::Tensor gradient) override {
    slots.push_back(slot);
    gradients.push_back(std::move(gradient));
  }
  std::vector<std::size_t> slots;
  std::vector<torch::Tensor> gradients;
};

TEST(FlatSpace, HoldsTiedParametersOnceAndKeepsTheUsersHandles) {
  TiedNet net;
  const torch::Tensor handle = net->a;
  ModuleModel model(net.ptr(), nothing);
  FlatSpace space(model);
  ASSERT_EQ(space.slots().size(), 4u);
  EXPECT_EQ(space.slots()[0].name, "a");
  EXPECT_EQ(space.slots()[0].aliases, std::vector<std::string>{"tied"});
  EXPECT_EQ(space.slots()[1].offset, 16);
  EXPECT_EQ(space.slots()[3].elements, 0);
  EXPECT_EQ(space.parameter_elements(), 3 + 1 + 20 + 0);
  EXPECT_EQ(space.elements() % 16, 0);
  space.values()[1] = 42.0f;
  EXPECT_EQ(handle[1].item<float>(), 42.0f) << "the user's tensor lies in the flat space";
  EXPECT_EQ(net->tied[1].item<float>(), 42.0f);
}

TEST(FlatSpace, RefusesMixedTypesByName) {
  auto module = std::make_shared<torch::nn::Sequential>()->ptr();
  module->register_module("first", torch::nn::Linear(2, 2).ptr());
  auto second = torch::nn::Linear(2, 2);
  second->to(torch::kFloat64);
  module->register_module("second", second.ptr());
  ModuleModel model(module, nothing);
  const Error error = testing::error_of([&] { FlatSpace space(model); });
  EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
  EXPECT_NE(error.message().find("second.weight"), std::string::npos) << error.message();
}

TEST(GradientHooks, HandOverTheSumOfMicroBatchesOnce) {
  TiedNet net;
  ModuleModel model(net.ptr(), nothing);
  const FlatSpace space(model);
  GradientHooks hooks(space);
  hooks.begin_step();
  EXPECT_TRUE(hooks.active(0));
  EXPECT_FALSE(hooks.active(1)) << "frozen";
  Taken taken;
  (net->a * 2.0f).sum().backward();  // first micro-batch: nobody is told
  EXPECT_TRUE(taken.slots.empty());
  hooks.deliver_to(taken);
  (net->a * 3.0f + net->tied).sum().backward();  // used twice: still one gradient
  hooks.end_replica();
  ASSERT_EQ(taken.slots, std::vector<std::size_t>{0});
  EXPECT_TRUE(torch::equal(taken.gradients[0], torch::full({3}, 6.0f)));
  EXPECT_FALSE(net->a.grad().defined()) << "autograd keeps nothing";
}

TEST(GradientHooks, HandOverAtTheEndWhatTheLastMicroBatchDidNotUse) {
  TiedNet net;
  ModuleModel model(net.ptr(), nothing);
  const FlatSpace space(model);
  GradientHooks hooks(space);
  Taken taken;
  hooks.begin_step();
  (net->b * 4.0f).sum().backward();
  hooks.deliver_to(taken);
  net->a.sum().backward();
  EXPECT_EQ(taken.slots, std::vector<std::size_t>{0}) << "delivered while backward ran";
  hooks.end_replica();
  EXPECT_EQ(taken.slots, (std::vector<std::size_t>{0, 2}));
}

TEST(GradientHooks, FollowAParameterThatIsFrozenAndThawed) {
  TiedNet net;
  ModuleModel model(net.ptr(), nothing);
  const FlatSpace space(model);
  GradientHooks hooks(space);
  net->a.set_requires_grad(false);
  hooks.begin_step();
  EXPECT_FALSE(hooks.active(0));
  net->a.set_requires_grad(true);
  hooks.begin_step();
  Taken taken;
  hooks.deliver_to(taken);
  net->a.sum().backward();
  hooks.end_replica();
  EXPECT_EQ(taken.slots, std::vector<std::size_t>{0});
}

TEST(ArenaAllocator, PutsLargeTensorsWherePeersCanReadThem) {
  use_shared_arena();
  const torch::Tensor large = torch::ones({1000});
  EXPECT_TRUE(comm::process_arena().contains(large.data_ptr(), large.nbytes()));
  const torch::Tensor small = torch::ones({4});
  EXPECT_FALSE(comm::process_arena().contains(small.data_ptr(), small.nbytes()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data_ptr()) % 64, 0u);
  auto linear = torch::nn::Linear(100, 50);
  linear(torch::ones({3, 100})).sum().backward();
  const torch::Tensor gradient = linear->weight.grad();
  EXPECT_TRUE(comm::process_arena().contains(gradient.data_ptr(), gradient.nbytes())) << "autograd's own gradient";
}

TEST(ArenaAllocator, CountsWhatTensorsTake) {
  use_shared_arena();
  observe::MemoryMeter& meter = observe::process_memory();
  const std::int64_t before = meter.total();
  meter.reset_peaks();
  {
    const torch::Tensor first = torch::empty({1000}, torch::kFloat32);
    const torch::Tensor second = torch::empty({10}, torch::kFloat64);
    EXPECT_EQ(meter.total() - before, 4080);
  }
  EXPECT_EQ(meter.total(), before);
  EXPECT_EQ(meter.peak().total - before, 4080);
}

std::int64_t now(observe::MemoryCategory category) {
  return observe::process_memory().current()[static_cast<std::size_t>(category)];
}

TEST(ArenaAllocator, CountsUnderTheCategoryOfTheScopeUntilItIsTaggedAnew) {
  use_shared_arena();
  using observe::MemoryCategory;
  const std::int64_t batch = now(MemoryCategory::kBatch);
  const std::int64_t partials = now(MemoryCategory::kGradientPartials);
  {
    torch::Tensor tensor;
    {
      const observe::MemoryScope outer(MemoryCategory::kOptimizer);
      const observe::MemoryScope scope(MemoryCategory::kBatch);
      tensor = torch::empty({500}, torch::kFloat32);
    }
    EXPECT_EQ(now(MemoryCategory::kBatch) - batch, 2000);
    const torch::Tensor part = tensor.narrow(0, 10, 20);
    EXPECT_TRUE(retag(part, MemoryCategory::kGradientPartials));
    EXPECT_EQ(now(MemoryCategory::kBatch), batch);
    EXPECT_EQ(now(MemoryCategory::kGradientPartials) - partials, 2000) << "the whole memory, whichever part is named";
    std::thread([moved = std::move(tensor)] {}).join();
  }
  EXPECT_EQ(now(MemoryCategory::kGradientPartials), partials) << "freed on whatever thread";
  std::vector<float> own(8);
  EXPECT_FALSE(retag(torch::from_blob(own.data(), {8}), MemoryCategory::kBatch)) << "memory of somebody else";
  EXPECT_EQ(now(MemoryCategory::kBatch), batch);
}

TEST(ArenaAllocator, CountsPassesAsActivationsOnEveryThread) {
  use_shared_arena();
  using observe::MemoryCategory;
  observe::process_memory().enter(observe::MemoryPhase::kBackward);
  const std::int64_t activations = now(MemoryCategory::kActivations);
  torch::Tensor made;
  std::thread([&made] { made = torch::empty({300}, torch::kFloat32); }).join();
  EXPECT_EQ(now(MemoryCategory::kActivations) - activations, 1200);
  observe::process_memory().enter(observe::MemoryPhase::kUpdate);
  const std::int64_t other = now(MemoryCategory::kOther);
  const torch::Tensor loose = torch::empty({100}, torch::kFloat32);
  EXPECT_EQ(now(MemoryCategory::kOther) - other, 400);
}

TEST(RandomScope, BelongsToThePlaceAndToNothingElse) {
  const auto draw = [](const RandomPlace& place) {
    const RandomScope scope(place);
    return torch::rand({8});
  };
  const torch::Tensor first = draw({1, 5, 2, 0});
  torch::rand({100});  // whatever was drawn before
  EXPECT_TRUE(torch::equal(first, draw({1, 5, 2, 0})));
  EXPECT_FALSE(torch::equal(first, draw({2, 5, 2, 0})));
  EXPECT_FALSE(torch::equal(first, draw({1, 6, 2, 0})));
  EXPECT_FALSE(torch::equal(first, draw({1, 5, 3, 0})));
  EXPECT_FALSE(torch::equal(first, draw({1, 5, 2, 1})));
}

TEST(RandomScope, GivesEachLayerItsOwnSeed) {
  EXPECT_FALSE(layer_seed("conv1").has_value()) << "outside a scope";
  const RandomScope scope({1, 2, 3, 4});
  EXPECT_EQ(layer_seed("dropout1"), layer_seed("dropout1"));
  EXPECT_NE(layer_seed("dropout1"), layer_seed("dropout2"));
}

TEST(Loss, IsTheSumOfItsSumsAndGoesBackThroughEach) {
  const torch::Tensor w = torch::tensor({2.0, 3.0}, torch::dtype(torch::kFloat64).requires_grad(true));
  const torch::Tensor shared = w * w;  // part of both graphs
  Loss loss;
  loss.sum = shared.sum();
  loss.further_sums = {(shared * 2.0).sum(), torch::tensor(5.0, torch::kFloat64)};
  EXPECT_DOUBLE_EQ(loss.value(), 13.0 + 26.0 + 5.0);
  torch::Tensor before;
  loss.backward([&] { before = w.grad().clone(); });
  EXPECT_TRUE(before.equal(torch::tensor({12.0, 18.0}, torch::kFloat64))) << "called once all but the last are through";
  EXPECT_TRUE(w.grad().equal(before)) << "the last sum asks for no gradient";
  Loss plain;
  plain.sum = (w * 3.0).sum();
  w.mutable_grad().reset();
  plain.backward();
  EXPECT_TRUE(w.grad().equal(torch::tensor({3.0, 3.0}, torch::kFloat64)));
}

}  // namespace
}  // namespace convoy::params

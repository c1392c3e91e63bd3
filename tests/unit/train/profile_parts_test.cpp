// Parts of the profile: layers from operators that ran, the line through two batch sizes, limits, the device timer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "convoy/base/error.h"
#include "convoy/train/profile/batch_fit.h"
#include "convoy/train/profile/device_timer.h"
#include "convoy/train/profile/layer_recorder.h"
#include "convoy/train/profile/layer_table.h"

namespace convoy::train {
namespace {

using ::testing::ElementsAre;

OperatorRun ran(const std::string& name, const std::string& module, double forward_ms, double backward_ms,
                double flop) {
  OperatorRun run;
  run.name = name;
  run.module = module;
  run.forward_ms = forward_ms;
  run.backward_ms = backward_ms;
  run.cost.forward_flop = flop;
  return run;
}

TEST(LayerTable, AddsThePassesOfAStepAndKeepsStepsApart) {
  LayerTable table;
  for (int pass = 0; pass < 2; ++pass) {
    table.add_pass({ran("conv2d", "conv", 1, 2, 10), ran("relu", "", 3, 4, 5), ran("relu", "", 5, 6, 5)});
  }
  table.end_step(20, 30);
  table.add_pass({ran("conv2d", "conv", 7, 8, 10), ran("tanh", "", 1, 1, 1)});
  table.end_step(9, 9);
  ASSERT_EQ(table.rows().size(), 4u);
  EXPECT_EQ(table.rows()[0].name, "conv");
  EXPECT_TRUE(table.rows()[0].has_parameters);
  EXPECT_THAT(table.rows()[0].forward_ms, ElementsAre(2, 7));
  EXPECT_THAT(table.rows()[0].backward_ms, ElementsAre(4, 8));
  EXPECT_EQ(table.rows()[0].cost.forward_flop, 15.0) << "a step, on average";
  EXPECT_EQ(table.rows()[1].name, "relu 1");
  EXPECT_EQ(table.rows()[2].name, "relu 2");
  EXPECT_THAT(table.rows()[2].forward_ms, ElementsAre(10, 0));
  EXPECT_EQ(table.rows()[3].name, "tanh 1");
  EXPECT_THAT(table.rows()[3].forward_ms, ElementsAre(0, 1)) << "it did not run in the first step";
  EXPECT_THAT(table.forward_ms(), ElementsAre(20, 9));
}

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
    head = register_module("head", torch::nn::Sequential(torch::nn::Linear(4 * 16, 8), torch::nn::Linear(8, 3)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return head->forward(torch::relu(torch::relu(norm(conv(x)))).flatten(1));
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Sequential head{nullptr};
};
TORCH_MODULE(SmallNet);

TEST(LayerRecorder, NamesLayersByTheirModulesAndGivesEachItsBackwardNodes) {
  SmallNet net;
  RecordedModel model(params::make_classifier(net.ptr()));
  const params::FlatSpace space(model);
  const auto timer = make_processor_timer();
  LayerRecorder recorder(*timer);
  LayerTable table;
  const params::Batch batch{torch::randn({5, 2, 4, 4}), torch::tensor({0, 1, 2, 0, 1})};
  model.forward(batch).sum.backward();  // nobody is told
  recorder.start(space, model.buffers());
  model.tell(&recorder);
  model.forward(batch).sum.backward();
  model.tell(nullptr);
  recorder.take_passes(table);
  table.end_step(1, 1);
  recorder.stop();
  model.forward(batch).sum.backward();
  recorder.take_passes(table);

  std::vector<std::string> names;
  for (const LayerRow& row : table.rows()) names.push_back(row.name);
  EXPECT_THAT(names,
              ElementsAre("conv", "norm", "relu 1", "relu 2", "flatten 1", "head.0", "head.1", "cross_entropy_loss 1"));
  for (const LayerRow& row : table.rows()) {
    EXPECT_EQ(row.forward_ms.size(), 1u) << "only the pass that was told counts";
    EXPECT_GT(row.forward_ms[0], 0.0) << row.name;
    EXPECT_GT(row.backward_ms[0], 0.0) << row.name;
  }
  const double out = 5.0 * 4 * 16;
  EXPECT_EQ(table.rows()[0].cost.forward_flop, 2 * out * 2 * 9 + out);
  EXPECT_EQ(table.rows()[0].cost.backward_flop, 2 * out * 2 * 9 + out) << "the batch wants no gradient";
  EXPECT_EQ(table.rows()[5].cost.forward_flop, 2.0 * 5 * 64 * 8 + 40);
  EXPECT_EQ(table.rows()[5].cost.backward_flop, 2 * 2.0 * 5 * 64 * 8 + 40);
  EXPECT_EQ(table.rows()[0].output_bytes, 4 * out);
}

TEST(ModulePath, IsTheParametersWithoutItsLastName) {
  EXPECT_EQ(module_path("block1.conv.weight"), "block1.conv");
  EXPECT_EQ(module_path("scale"), "");
}

TEST(DeviceTimer, OfTheProcessorMarksTheClock) {
  ManualClock clock;
  const auto timer = make_processor_timer(clock);
  const std::size_t first = timer->mark();
  clock.advance(std::chrono::milliseconds(3));
  const std::size_t second = timer->mark();
  clock.advance(std::chrono::milliseconds(4));
  const std::size_t third = timer->mark();
  timer->synchronise();
  EXPECT_EQ(timer->between(first, second), std::chrono::milliseconds(3));
  EXPECT_EQ(timer->between(first, third), std::chrono::milliseconds(7));
  timer->reset();
  EXPECT_THROW(timer->between(first, second), Error) << "its marks are forgotten";
}

TEST(BatchFit, GoesThroughBothPassesAndFindsTheLastSizeThatFits) {
  const BatchFit fit = fit_batch({10, 1500}, {20, 2500});
  EXPECT_DOUBLE_EQ(fit.bytes_per_sample, 100);
  EXPECT_DOUBLE_EQ(fit.base_bytes, 500);
  EXPECT_EQ(largest_batch(fit, 5500), 50);
  EXPECT_EQ(largest_batch(fit, 5499), 49);
  EXPECT_EQ(largest_batch(fit, 599), 0);
  EXPECT_THROW(fit_batch({10, 1}, {10, 2}), Error);
}

void write(MemoryFiles& files, const std::string& path, const std::string& text) {
  files.make_directories(parent_path(path));
  files.write(path, std::vector<std::string_view>{text});
}

TEST(MemoryLimit, IsTheSmallestOfTheGroupsAboveTheProcessOrTheMachines) {
  MemoryFiles files;
  write(files, "/proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(read_memory_limit(files).bytes, 1024000);
  EXPECT_EQ(read_memory_limit(files).source, "machine");
  EXPECT_EQ(read_available_memory(files), 0) << "a system that does not tell";
  write(files, "/proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:  10 kB\n");
  EXPECT_EQ(read_available_memory(files), 10240);
  write(files, "/proc/self/cgroup", "0::/a/b\n");
  write(files, "/sys/fs/cgroup/a/b/memory.max", "max\n");
  write(files, "/sys/fs/cgroup/a/memory.max", "500000\n");
  EXPECT_EQ(read_memory_limit(files).bytes, 500000);
  EXPECT_EQ(read_memory_limit(files).source, "cgroup");
  write(files, "/sys/fs/cgroup/a/memory.max", "50000000\n");
  EXPECT_EQ(read_memory_limit(files).bytes, 1024000) << "a limit above the machine's memory is none";
  write(files, "/proc/self/cgroup", "5:cpu:/x\n4:memory:/m\n");
  write(files, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read_memory_limit(files).source, "machine");
  write(files, "/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "700000\n");
  EXPECT_EQ(read_memory_limit(files).bytes, 700000);
}

}  // namespace
}  // namespace convoy::train

// What observation costs: steps of the CNN on Fashion-MNIST in one process, in pairs of one with everything on (trace,
// timers, ledger, metrics, memory by category) and one with everything off; the order within a pair alternates. Told: the
// median of the pairs' ratios.
// The exit status says whether the bar, under 1% of the step, was reached: 0 yes, 1 no.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/with_kernels.h"
#include "convoy/base/files.h"
#include "convoy/comm/in_process_transport.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/observe/step_timer.h"
#include "convoy/params/arena_allocator.h"
#include "convoy/records/ledger/ledger.h"
#include "convoy/train/run_report.h"
#include "convoy/train/task.h"
#include "convoy/train/trace/trace_collector.h"
#include "convoy/train/trainer.h"
#include "convoy/zoo/registry.h"
#include "tests/support/temporary_folder.h"

namespace convoy {
namespace {

using observe::Part;

constexpr int kWarmup = 20;
constexpr int kPairs = 170;

class Subject {
 public:
  explicit Subject(const std::string& folder)
      : folder_(folder),
        recipe_(read()),
        group_(comm::make_group(std::move(comm::make_in_process_transports(1)[0]), {})),
        task_(recipe_, local_files(), folder, *group_),
        trainer_(recipe_, task_.samples(), *group_, train::make_model(recipe_, task_, registry_)),
        report_(local_files(), folder, recipe_),
        trace_(recipe_, 0, 1, {}, *group_, local_files(), folder) {
    records::LedgerHeader header;
    header.plan = trainer_.plan().options();
    ledger_.emplace(local_files(), folder, header);
    loader_ = task_.load(trainer_.plan(), trainer_.parallel().replicas(), 0, 1 << 20);
  }

  // Returns the step's seconds.
  double step(bool observed) {
    records::StepBatch& input = loader_->next(std::chrono::seconds(60));
    observe::process_memory().set_counting(observed);
    const TimePoint begin = system_clock().now();
    observed ? observed_step(input, begin) : plain_step(input);
    return to_seconds(system_clock().now() - begin);
  }

 private:
  spec::Recipe read() const {
    spec::Recipe recipe = spec::read_recipe(std::string(CONVOY_SOURCE_DIR) + "/examples/recipes/fashion_cnn.toml", {});
    recipe.replicas.count = 1;
    recipe.measure.warmup_steps = 0;
    recipe.measure.trace_steps = kWarmup + 2 * kPairs;
    return recipe;
  }

  void plain_step(records::StepBatch& input) {
    const auto result = trainer_.gradient(number_, input);
    trainer_.update(number_, result);
    ++number_;
  }

  // What train::Run does in a step.
  void observed_step(records::StepBatch& input, TimePoint begin) {
    timer_.begin_step();
    timer_.add(Part::kInputPrepare, input.prepare);
    timer_.add(Part::kInputWait, input.waited);
    trace_.begin_step(number_, begin, input);
    const auto result = trainer_.gradient(number_, input);
    trace_.after_gradient(result, trainer_.parallel().bucket_times());
    timer_.add(Part::kForward, result.forward);
    timer_.add(Part::kBackward, result.backward);
    timer_.add(Part::kCommExposed, result.exposed);
    timer_.add(Part::kWaitSlowest, result.wait_slowest);
    double rate = 0;
    {
      const auto span = timer_.measure(Part::kOptimizer);
      rate = trainer_.update(number_, result);
    }
    trace_.after_update();
    for (const records::ReplicaBatches& replica : input.replicas) {
      std::vector<std::int64_t> ids;
      for (const records::Batch& batch : replica.micro_batches) {
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      }
      ledger_->append(number_, replica.replica, ids);
    }
    ledger_->commit();
    trace_.end_step();
    const observe::StepTimes times = timer_.end_step();
    report_.add_step({number_, 0, result.loss, rate, result.gradient_norm, result.count, times});
    report_.add_own_work(result.own_work_ms);
    ++number_;
  }

  const std::string folder_;
  const spec::Recipe recipe_;
  zoo::Registry registry_ = zoo::reference_models();
  const std::unique_ptr<comm::Group> group_;
  train::Task task_;
  train::Trainer trainer_;
  train::RunReport report_;
  train::TraceCollector trace_;
  observe::StepTimer timer_;
  std::optional<records::LedgerWriter> ledger_;
  std::unique_ptr<records::Loader> loader_;
  std::int64_t number_ = 0;
};

int run() {
  torch::set_num_threads(1);
  params::use_shared_arena();
  const testing::TemporaryFolder folder;
  Subject subject(folder.path());
  for (int i = 0; i < kWarmup; ++i) subject.step(i % 2 == 0);
  std::vector<double> ratios;
  std::vector<double> off_seconds;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 0;
    const double a = subject.step(first);
    const double b = subject.step(!first);
    ratios.push_back(first ? a / b : b / a);
    off_seconds.push_back(first ? b : a);
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(off_seconds.begin(), off_seconds.end());
  const double cost = ratios[kPairs / 2] - 1;
  // The interval in which the median lies with 95%, by the order of the pairs.
  const auto margin = static_cast<std::size_t>(0.98 * std::sqrt(static_cast<double>(kPairs)));
  const bool reached = cost < 0.01;
  fmt::print("{}: observation costs {:+.2f}% of a step of {:.1f} ms (median of {} pairs; 95%: {:+.2f}% to {:+.2f}%; bar 1%)\n",
             reached ? "reached" : "MISSED ", 100 * cost, 1e3 * off_seconds[kPairs / 2], kPairs,
             100 * (ratios[kPairs / 2 - margin] - 1), 100 * (ratios[kPairs / 2 + margin] - 1));
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace convoy

int main(int, char** argv) {
  convoy::start_with_kernels(argv);
  return convoy::run();
}

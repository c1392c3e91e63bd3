// Overlap of the gradient exchange with backward: the CNN of `make bench-peers` (global batch 128, one replica a rank) on
// two ranks in two network namespaces that a link of 100 Mbit/s joins, so it needs root. Steps with and without overlap are
// alternated in the same processes. Told: what of the exchange is exposed, against a replay of the measured ready times on
// the measured link; and by how much overlap shortens the step, against the time that it hid.
// The exit status says whether both bars were reached: 0 yes, 1 no; 0 with a reason where there are no namespaces.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/with_kernels.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/arena_allocator.h"
#include "convoy/params/optimizer.h"
#include "convoy/zoo/models.h"
#include "tests/support/namespaces.h"
#include "tests/support/rank_processes.h"
#include "tests/support/shared_array.h"

namespace convoy {
namespace {

using testing::RankContext;
using testing::RankProcesses;
using testing::RankProcessOptions;
using testing::SharedArray;
using testing::TwoNamespaces;

constexpr int kRanks = 2;
constexpr int kWarmup = 4;
constexpr int kSteps = 24;
constexpr int kLinkRounds = 9;
constexpr std::size_t kMostBuckets = 64;
constexpr std::int64_t kBucketBytes = 64 << 10;
constexpr std::int64_t kBatch = 128 / kRanks;

// One step of one rank, in seconds of the clock that all processes of a machine share.
struct StepTimes {
  double begin, end;
  double backward_end;
  double wait_end;
  double ready[kMostBuckets];
  double launched[kMostBuckets];
  double finished[kMostBuckets];
};

// What a rank reports.
struct RankReport {
  std::size_t buckets;
  std::int64_t bytes[kMostBuckets];
  // Seconds of each bucket's exchange when nothing else goes on.
  double alone[kMostBuckets];
  // By [overlap][step].
  StepTimes steps[2][kSteps];
};

double seconds(TimePoint time) { return to_seconds(time.time_since_epoch()); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// A model with its strategy and optimizer.
struct Training {
  Training(comm::Group& group, bool overlap) {
    torch::manual_seed(1);
    zoo::ModelRequest request;
    request.recipe.channels = {32, 32, 64, 64, 128, 128};
    request.sample_shape = {3, 32, 32};
    model = params::make_classifier(std::make_shared<zoo::CnnImpl>(request));
    model->train(true);
    parallel::DataParallelOptions options;
    options.replicas = kRanks;
    options.overlap = overlap;
    options.bucket_bytes = kBucketBytes;
    strategy = std::make_unique<parallel::DataParallel>(*model, group, options);
    params::OptimizerOptions sgd;
    sgd.momentum = 0.9;
    optimizer = std::make_unique<params::Optimizer>(strategy->space(), sgd);
  }
  std::unique_ptr<params::Model> model;
  std::unique_ptr<parallel::DataParallel> strategy;
  std::unique_ptr<params::Optimizer> optimizer;
};

StepTimes run_step(Training& training, comm::Group& group, std::int64_t number, const params::Batch& batch) {
  comm::barrier(group);
  StepTimes times{};
  times.begin = seconds(system_clock().now());
  const auto result = training.strategy->step(number, std::vector<std::vector<params::Batch>>{{batch}});
  training.optimizer->update(result.gradient, 0.01);
  times.end = seconds(system_clock().now());
  times.backward_end = seconds(result.wait_begin);
  times.wait_end = seconds(result.wait_end);
  const auto& buckets = training.strategy->bucket_times();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    times.ready[i] = seconds(buckets[i].ready);
    times.launched[i] = seconds(buckets[i].launched);
    times.finished[i] = seconds(buckets[i].finished);
  }
  return times;
}

void measure_link(comm::Group& group, RankReport& report) {
  const spec::OrderedLayout layout{kRanks, spec::deal_replicas(kRanks, kRanks)};
  for (std::size_t i = 0; i < report.buckets; ++i) {
    const std::vector<float> input(static_cast<std::size_t>(report.bytes[i]) / sizeof(float), 1.0F);
    std::vector<float> output(input.size());
    std::vector<double> times;
    for (int round = 0; round < kLinkRounds; ++round) {
      // As many as fill the link for a while: it lends its first bytes at a higher rate.
      const int count = static_cast<int>(std::max<std::int64_t>(1, (1 << 20) / report.bytes[i]));
      comm::barrier(group);
      const TimePoint begin = system_clock().now();
      std::vector<comm::Work> works;
      for (int k = 0; k < count; ++k) {
        works.push_back(comm::ordered_all_reduce_async(group, layout, {comm::Buffer(std::span<const float>(input))},
                                                       comm::Buffer(std::span<float>(output)), DType::kFloat32));
      }
      comm::wait_all(works);
      times.push_back(to_seconds(system_clock().now() - begin) / count);
    }
    report.alone[i] = median(times);
  }
}

void train(const RankContext& context, RankReport& report) {
  torch::set_num_threads(1);
  params::use_shared_arena();  // memory that is kept, as in every run
  Training with(context.group, true);
  Training without(context.group, false);
  torch::manual_seed(context.rank);
  const params::Batch batch{torch::randn({kBatch, 3, 32, 32}), torch::randint(0, 10, {kBatch}, torch::kInt64)};
  for (int step = -kWarmup; step < kSteps; ++step) {
    for (int turn = 0; turn < 2; ++turn) {
      const bool overlap = (step + turn) % 2 == 0;
      const StepTimes times = run_step(overlap ? with : without, context.group, step + kWarmup, batch);
      if (step >= 0) report.steps[overlap ? 1 : 0][step] = times;
    }
  }
  const auto& buckets = with.strategy->bucket_times();
  report.buckets = std::min(buckets.size(), kMostBuckets);
  for (std::size_t i = 0; i < report.buckets; ++i) report.bytes[i] = buckets[i].bytes;
  measure_link(context.group, report);
}

// The end of the exchange when each bucket is sent as soon as it is ready on all ranks and the link is free.
double replay(const SharedArray<RankReport>& reports, int step) {
  double free = 0;
  for (std::size_t i = 0; i < reports[0].buckets; ++i) {
    double ready = 0;
    double cost = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const RankReport& report = reports[static_cast<std::size_t>(rank)];
      ready = std::max(ready, report.steps[1][step].ready[i]);
      cost = std::max(cost, report.alone[i]);
    }
    free = std::max(free, ready) + cost;
  }
  return free;
}

int judge(const SharedArray<RankReport>& reports) {
  std::vector<double> exposed, replayed, hidden, gained, with, without, all_exposed;
  const std::size_t last = reports[0].buckets - 1;
  for (int step = 0; step < kSteps; ++step) {
    const double told = replay(reports, step);
    for (int rank = 0; rank < kRanks; ++rank) {
      const RankReport& report = reports[static_cast<std::size_t>(rank)];
      const StepTimes& on = report.steps[1][step];
      const StepTimes& off = report.steps[0][step];
      exposed.push_back(std::max(0.0, on.finished[last] - on.backward_end));
      replayed.push_back(std::max(0.0, told - on.backward_end));
      all_exposed.push_back(on.wait_end - on.backward_end);
      // Buckets follow each other on the link: what was on its way before the end of backward, as a union.
      double covered = 0;
      double end = 0;
      for (std::size_t i = 0; i <= last; ++i) {
        const double begin = std::max(on.launched[i], end);
        end = std::max(end, std::min(on.finished[i], on.backward_end));
        covered += std::max(0.0, end - begin);
      }
      hidden.push_back(covered);
      with.push_back(on.end - on.begin);
      without.push_back(off.end - off.begin);
      gained.push_back((off.end - off.begin) - (on.end - on.begin));
    }
  }
  std::int64_t bytes = 0;
  double alone = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    bytes += reports[0].bytes[i];
    alone += reports[0].alone[i];
  }
  const double share = median(exposed) / median(replayed);
  const double gain_share = median(gained) / median(hidden);
  fmt::print("{} buckets, {:.2f} MB of gradients; alone on the link {:.1f} ms\n", last + 1, static_cast<double>(bytes) * 1e-6,
             alone * 1e3);
  fmt::print("step with overlap {:.1f} ms, without {:.1f} ms (medians of {} each)\n", median(with) * 1e3,
             median(without) * 1e3, with.size());
  fmt::print("exposed with overlap {:.1f} ms (with the exchange of facts {:.1f} ms)\n", median(exposed) * 1e3,
             median(all_exposed) * 1e3);
  const bool first = share <= 1.15;
  const bool second = gain_share >= 0.9 && gain_share <= 1.1;
  fmt::print("{}: exposed is {:.3f} times that of the replay, {:.1f} ms (bar 1.15)\n", first ? "reached" : "MISSED ", share,
             median(replayed) * 1e3);
  fmt::print("{}: the step is shorter by {:.1f} ms, {:.3f} of the {:.1f} ms that were hidden (bar 0.9 to 1.1)\n",
             second ? "reached" : "MISSED ", median(gained) * 1e3, gain_share, median(hidden) * 1e3);
  return first && second ? 0 : 1;
}

int run() {
  TwoNamespaces hosts(1);
  hosts.limit(0, "100mbit");
  if (!hosts.problem().empty()) {
    fmt::print("not measured: {}\n", hosts.problem());
    return 0;
  }
  const SharedArray<RankReport> reports(kRanks);
  RankProcessOptions options;
  options.transport = "gloo";
  options.ranks = kRanks;
  options.namespaces = {TwoNamespaces::name(0), TwoNamespaces::name(1)};
  options.interfaces = {"v0"};
  options.limit_s = 300;
  RankProcesses ranks(options, [&](const RankContext& context) {
    train(context, reports[static_cast<std::size_t>(context.rank)]);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto ending = ranks.ending(rank);
    if (ending.code == 100) continue;
    fmt::print(stderr, "rank {} failed: {}\n", rank, ending.message);
    return 1;
  }
  return judge(reports);
}

}  // namespace
}  // namespace convoy

int main(int, char** argv) {
  convoy::start_with_kernels(argv);
  return convoy::run();
}

#include "convoy/observe/trace/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/base/text.h"
#include "convoy/observe/quantile.h"
#include "convoy/observe/trace/step_timeline.h"

namespace convoy::observe {
namespace {

// Which share of buckets or bytes makes a habit.
constexpr double kMost = 0.8;
// From how many buckets on they can be too many.
constexpr std::size_t kManyBuckets = 8;
// From which share of its step on a rank's waiting for input is named.
constexpr double kSlowInput = 0.1;
// From which share of the step on forward and backward are what it consists of.
constexpr double kHighUtilisation = 0.5;
// From which share of forward and backward on operators are what these consist of, on a processor that others use too.
constexpr double kLeastOfPasses = 0.2;
// Buckets of about one size tell no fixed cost; up to this size nearly all of their time is.
constexpr std::int64_t kTinyBucketBytes = 32 << 10;

double ms_of(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

double middle(const std::vector<double>& values) { return values.empty() ? 0.0 : median(values); }

// What each rank did with its buckets in each step, all values one beside the other.
struct LaunchHabits {
  // The share of a step's bytes that were launched after the end of backward.
  std::vector<double> late_share;
  // How long before the end of backward the first of these was ready.
  std::vector<double> lead_ms;
  // The share of a step's buckets whose launch returned when they were finished, and the time in such launches but the last.
  std::vector<double> waited_share;
  std::vector<double> waited_ms;
};

void add_habits(const StepTimeline& step, std::size_t rank, LaunchHabits& habits) {
  const std::int64_t backward_end = step.ranks[rank].backward_end;
  double bytes = 0;
  double late_bytes = 0;
  double buckets = 0;
  double waited = 0;
  std::int64_t lead = 0;
  std::int64_t in_launches = 0;
  std::int64_t last_launch = 0;
  for (const CollectiveTimes& times : step.collectives) {
    if (times.number == kAgreementNumber) continue;
    ++buckets;
    bytes += static_cast<double>(times.bytes);
    if (times.launched[rank] >= backward_end) {
      late_bytes += static_cast<double>(times.bytes);
      lead = std::max(lead, backward_end - times.ready[rank]);
    }
    if (times.returned[rank] >= times.finished[rank]) {
      ++waited;
      last_launch = times.returned[rank] - times.launched[rank];
      in_launches += last_launch;
    }
  }
  if (buckets == 0) return;
  habits.late_share.push_back(bytes > 0 ? late_bytes / bytes : 0.0);
  habits.lead_ms.push_back(ms_of(lead));
  habits.waited_share.push_back(waited / buckets);
  habits.waited_ms.push_back(ms_of(in_launches - last_launch));
}

class Doctor {
 public:
  Doctor(const Trace& trace, const TraceAnalysis& analysis, const DiagnosisLimits& limits)
      : trace_(trace), analysis_(analysis), limits_(limits), steps_(step_timelines(trace)) {}

  std::vector<Finding> examine() {
    if (steps_.empty()) return {};
    if (trace_.ranks.size() > 1) {
      // Each of the first two keeps everything from being hidden, so that sizes tell nothing.
      if (!launches() && !large_buckets()) small_buckets();
    }
    slow_input();
    slow_rank();
    tiny_operations();
    return std::move(findings_);
  }

 private:
  double of_all(StepTime time) const { return analysis_.all[static_cast<std::size_t>(time)].median; }
  double of(std::size_t rank, StepTime time) const {
    return analysis_.ranks[rank][static_cast<std::size_t>(time)].median;
  }
  double step_ms() const { return of_all(StepTime::kStep); }
  bool matters(double ms) const { return ms >= limits_.share_of_step * step_ms(); }

  bool launches() {
    LaunchHabits habits;
    for (const StepTimeline& step : steps_) {
      for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) add_habits(step, rank, habits);
    }
    const double late = middle(habits.late_share);
    const double lead = middle(habits.lead_ms);
    if (late >= kMost && matters(lead)) {
      findings_.push_back(
          {"late_launch",
           -1,
           fmt::format(
               "{:.0f}% of the gradient bytes are launched after the end of backward, although the first bucket "
               "was ready {:.2f} ms before it",
               100 * late, lead),
           "launch each bucket when it is ready: parallel.overlap = true, and no wait for all of backward in between",
           {{"late_share", late},
            {"ready_before_end_ms", lead},
            {"exposed_moving_ms", of_all(StepTime::kMoving)},
            {"step_ms", step_ms()}}});
      return true;
    }
    const double share = middle(habits.waited_share);
    const double waited = middle(habits.waited_ms);
    if (bucket_bytes().size() >= 2 && share >= kMost && matters(waited)) {
      findings_.push_back(
          {"wait_after_launch",
           -1,
           fmt::format("{:.0f}% of the buckets are waited for straight after their launch: backward stands still for "
                       "{:.2f} ms of a step, and nothing is hidden",
                       100 * share, waited),
           "go on with backward after a launch, and wait once for all buckets when it is over",
           {{"waited_share", share}, {"waited_ms", waited}, {"step_ms", step_ms()}}});
      return true;
    }
    return false;
  }

  // The buckets of a step in their order; those of the newest step, which all earlier ones led up to.
  std::vector<double> bucket_bytes() const {
    std::vector<double> bytes;
    for (const CollectiveTimes& times : steps_.back().collectives) {
      if (times.number != kAgreementNumber) bytes.push_back(static_cast<double>(times.bytes));
    }
    return bytes;
  }

  bool large_buckets() {
    const std::vector<double> bytes = bucket_bytes();
    double all = 0;
    for (const double one : bytes) all += one;
    if (all <= 0) return false;
    const double last = bytes.back();
    const double moving = of_all(StepTime::kMoving);
    // A bucket far beyond the size that was asked for is one parameter, which cannot be cut.
    const bool one_parameter = trace_.bucket_bytes > 0 && last >= 2.0 * static_cast<double>(trace_.bucket_bytes);
    const bool large = last >= 0.5 * all && last > static_cast<double>(limits_.small_bucket_bytes);
    if (!large || one_parameter || !matters(moving)) return false;
    findings_.push_back(
        {"buckets_too_large",
         -1,
         fmt::format(
             "the last of {} bucket{} carries {:.0f}% of the bytes ({}) and can move only when backward is over: "
             "{:.2f} ms of a step",
             bytes.size(), bytes.size() == 1 ? "" : "s", 100 * last / all,
             format_bytes(static_cast<std::uint64_t>(last)), moving),
         fmt::format("smaller buckets, so that most of the bytes move while backward goes on: for example "
                     "parallel.bucket_bytes = {}",
                     std::max<std::int64_t>(limits_.small_bucket_bytes, static_cast<std::int64_t>(all / 8))),
         {{"buckets", static_cast<double>(bytes.size())},
          {"last_bucket_bytes", last},
          {"all_bytes", all},
          {"exposed_moving_ms", moving},
          {"hidden_ms", of_all(StepTime::kHidden)},
          {"step_ms", step_ms()}}});
    return true;
  }

  // The median time in which each bucket's bytes moved.
  std::vector<double> bucket_ms(std::size_t buckets) const {
    std::vector<std::vector<double>> times(buckets);
    for (const StepTimeline& step : steps_) {
      std::size_t i = 0;
      for (const CollectiveTimes& one : step.collectives) {
        if (one.number == kAgreementNumber || i == buckets) continue;
        for (std::size_t rank = 0; rank < one.finished.size(); ++rank) {
          times[i].push_back(ms_of(one.finished[rank] - one.started[rank]));
        }
        ++i;
      }
    }
    std::vector<double> middles;
    for (const std::vector<double>& one : times) middles.push_back(middle(one));
    return middles;
  }

  // What a bucket costs whatever its size: where the straight line through time by bytes begins.
  static double fixed_ms(const std::vector<double>& bytes, const std::vector<double>& ms) {
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    const auto count = static_cast<double>(bytes.size());
    double mean_bytes = 0;
    double mean_ms = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      mean_bytes += bytes[i] / count;
      mean_ms += ms[i] / count;
    }
    if (*most < 2 * *least || *most < 1) return *most <= static_cast<double>(kTinyBucketBytes) ? mean_ms : 0.0;
    double both = 0;
    double square = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      both += (bytes[i] - mean_bytes) * (ms[i] - mean_ms);
      square += (bytes[i] - mean_bytes) * (bytes[i] - mean_bytes);
    }
    return std::clamp(mean_ms - std::max(both / square, 0.0) * mean_bytes, 0.0, mean_ms);
  }

  void small_buckets() {
    const std::vector<double> bytes = bucket_bytes();
    if (bytes.size() < kManyBuckets) return;
    const std::vector<double> ms = bucket_ms(bytes.size());
    double all_bytes = 0;
    double all_ms = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      all_bytes += bytes[i];
      all_ms += ms[i];
    }
    const auto count = static_cast<double>(bytes.size());
    const double fixed = fixed_ms(bytes, ms) * count;
    const bool small = all_bytes / count <= static_cast<double>(limits_.small_bucket_bytes);
    if (!small || fixed < 0.5 * all_ms || !matters(fixed)) return;
    findings_.push_back(
        {"buckets_too_small",
         -1,
         fmt::format("{} buckets of {} on average: of {:.2f} ms that they move for, {:.2f} ms are what a bucket costs "
                     "whatever its size",
                     bytes.size(), format_bytes(static_cast<std::uint64_t>(all_bytes / count)), all_ms, fixed),
         fmt::format("fewer, larger buckets: for example parallel.bucket_bytes = {}",
                     std::max<std::int64_t>(static_cast<std::int64_t>(all_bytes / 4), 1)),
         {{"buckets", count},
          {"mean_bucket_bytes", all_bytes / count},
          {"moving_ms", all_ms},
          {"fixed_ms", fixed},
          {"step_ms", step_ms()}}});
  }

  void slow_input() {
    std::vector<std::size_t> slow;
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
      if (of(rank, StepTime::kInputWait) >= kSlowInput * of(rank, StepTime::kStep)) slow.push_back(rank);
    }
    const bool all = slow.size() > 1 && slow.size() == trace_.ranks.size();
    for (const std::size_t rank : slow) {
      const double wait = all ? of_all(StepTime::kInputWait) : of(rank, StepTime::kInputWait);
      const double prepare = all ? of_all(StepTime::kInputPrepare) : of(rank, StepTime::kInputPrepare);
      findings_.push_back(
          {"slow_input",
           all ? -1 : static_cast<int>(rank),
           fmt::format(
               "{} wait{} {:.2f} ms of a step for input, which takes {:.2f} ms to prepare{}",
               all ? "all ranks" : fmt::format("rank {}", rank), all ? "" : "s", wait, prepare,
               trace_.ranks.size() > 1 && !all ? "; the others wait for it: reading is slow, not communication" : ""),
           "faster reading or storage on this rank; data.prefetch evens out single slow steps only",
           {{"input_wait_ms", wait}, {"input_prepare_ms", prepare}, {"step_ms", step_ms()}}});
      if (all) return;
    }
  }

  // A rank's passes and what no span covers, as if all had the same number of replicas. Not its update, in which ranks of
  // a host that divide it wait for each other.
  double compute_ms(std::size_t rank) const {
    double replicas = 0;
    for (const RankTrace& one : trace_.ranks) replicas += one.replicas;
    const double even = replicas / static_cast<double>(trace_.ranks.size());
    const double passes = of(rank, StepTime::kForward) + of(rank, StepTime::kBackward);
    return passes * even / std::max(trace_.ranks[rank].replicas, 1) + of(rank, StepTime::kOther);
  }

  void slow_rank() {
    if (trace_.ranks.size() < 2) return;
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
      std::vector<double> others;
      for (std::size_t other = 0; other < trace_.ranks.size(); ++other) {
        if (other != rank) others.push_back(compute_ms(other));
      }
      const double own = compute_ms(rank);
      const double usual = middle(others);
      if (own < (1.0 + limits_.slow_rank) * usual || !matters(own - usual)) continue;
      findings_.push_back(
          {"slow_rank",
           static_cast<int>(rank),
           fmt::format("rank {} computes {:.2f} ms in a step, the others {:.2f} ms: they wait for it", rank, own,
                       usual),
           "look for another process, a throttled processor or a fault of the machine there; or give it fewer replicas",
           {{"own_work_ms", own}, {"others_ms", usual}, {"step_ms", step_ms()}}});
    }
  }

  void tiny_operations() {
    std::vector<double> counts;
    std::vector<double> times_ms;
    for (const StepTimeline& step : steps_) {
      for (const RankTimeline& rank : step.ranks) {
        if (rank.operators < 0) continue;
        counts.push_back(static_cast<double>(rank.operators));
        times_ms.push_back(ms_of(rank.operator_ns));
      }
    }
    const double count = middle(counts);
    const double ms = middle(times_ms);
    if (count < static_cast<double>(limits_.many_operators)) return;
    const double each_us = 1000.0 * ms / count;
    const double passes = of_all(StepTime::kForward) + of_all(StepTime::kBackward);
    const double utilisation = passes / step_ms();
    // Their processor time is compared with time on the wall, in which others may have had the processor.
    const bool fill = ms >= kLeastOfPasses * passes;
    if (each_us > limits_.tiny_operator_us || utilisation < kHighUtilisation || !fill) return;
    findings_.push_back(
        {"tiny_operations",
         -1,
         fmt::format("forward and backward fill {:.0f}% of the step with {:.0f} operators of {:.1f} us on average: the "
                     "processor is busy, mostly with starting them",
                     100 * utilisation, count, each_us),
         "larger micro-batches, fewer replicas on a rank, wider and fewer layers, or fused operators",
         {{"operators", count}, {"mean_operator_us", each_us}, {"utilisation", utilisation}, {"step_ms", step_ms()}}});
  }

  const Trace& trace_;
  const TraceAnalysis& analysis_;
  const DiagnosisLimits& limits_;
  const std::vector<StepTimeline> steps_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> diagnose(const Trace& trace, const TraceAnalysis& analysis, const DiagnosisLimits& limits) {
  return Doctor(trace, analysis, limits).examine();
}

}  // namespace convoy::observe

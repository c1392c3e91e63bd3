#include "convoy/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/comm/clock_offsets.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/eval/imbalance.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/observe/step_timer.h"
#include "convoy/observe/trace/trace_file.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/records/balance.h"
#include "convoy/records/ledger/ledger.h"
#include "convoy/records/ledger/ledger_check.h"
#include "convoy/train/evaluation.h"
#include "convoy/train/planted_fault.h"
#include "convoy/train/run_report.h"
#include "convoy/train/share/measured_share.h"
#include "convoy/train/task.h"
#include "convoy/train/trace/rank_breakdown.h"
#include "convoy/train/trace/trace_collector.h"
#include "convoy/train/trainer.h"

namespace convoy::train {
namespace {

using observe::Part;

// At most so many progress events a second: they are for people.
constexpr Duration kProgressEvery = std::chrono::milliseconds(100);

// The time during which at least one bucket was on its way.
Duration covered(const std::vector<parallel::BucketTimes>& buckets) {
  Duration sum{};
  TimePoint end{};
  for (const parallel::BucketTimes& bucket : buckets) {  // launched in order
    const TimePoint begin = std::max(bucket.launched, end);
    if (bucket.finished > begin) {
      sum += bucket.finished - begin;
      end = bucket.finished;
    }
  }
  return sum;
}

// Measures the ranks on the first micro-batch of the run, where the recipe asks for it. All take the same samples, so that
// they differ by their speed alone.
MeasuredShares measured_shares(const spec::Recipe& recipe, const Task& task, params::Model& model, comm::Group& group) {
  const std::vector<params::NamedTensor> parameters = model.parameters();
  // What is wrong with a model without parameters, the strategy says.
  if (recipe.parallel.share != "auto" || group.size() == 1 || parameters.empty()) return {};
  const int replicas = replica_count(recipe, group.size());
  const spec::SamplePlan plan(plan_options(recipe, task.samples(), replicas));
  const auto loader = task.load(plan, {0, 1}, 0, 1);
  records::StepBatch& input = loader->next(group.timeout());
  const params::Batch batch =
      to_tensors(input.replicas.front().micro_batches.front(), parameters.front().tensor.scalar_type());
  return measure_shares(model, batch, {static_cast<std::uint64_t>(recipe.task.seed), 0, 0, 0}, replicas, group);
}

// Everything that one process holds while it trains.
class Run {
 public:
  Run(const RunRequest& request, const RunServices& services)
      : request_(request),
        services_(services),
        recipe_(request.recipe),
        fault_(services.group.rank()),
        group_(fault_.group(services.group)),
        task_(recipe_, services.files, request.directory, group_),
        model_(fault_.model(make_model(recipe_, task_, services.models))),
        shares_(measured_shares(recipe_, task_, *model_, group_)),
        trainer_(recipe_, task_.samples(), group_, std::move(model_), shares_.owners),
        plan_(trainer_.plan()),
        parallel_(trainer_.parallel()),
        total_steps_(trainer_.total_steps()),
        statistics_(recipe_.measure.warmup_steps) {
    if (group_.rank() == 0) report_.emplace(services.files, request.directory, recipe_);
    facts_.ranks = group_.size();
    facts_.replicas = plan_.options().replicas;
    facts_.owners = parallel_.owners();
    facts_.micro_batch_ms = shares_.micro_batch_ms;
  }

  void go() {
    try {
      train();
    } catch (...) {
      if (trace_) trace_->write_own();
      throw;
    }
  }

 private:
  void train() {
    begin();
    tell_shares();
    facts_.setup = system_clock().now() - started_;
    if (trace_) trace_->outside(observe::SpanKind::kSetup, started_);
    const auto reader = fault_.reader(task_.training_source().dataset);
    auto loader =
        task_.load(plan_, parallel_.replicas(), first_step_, std::max(first_step_, total_steps_), reader.get());
    timer_.begin_step();
    for (std::int64_t step = first_step_; step < total_steps_ && !facts_.reached_target; ++step) {
      if (step == first_step_ || step % plan_.steps_per_epoch() == 0) tell_classes(plan_.epoch_of(step));
      train_step(step, *loader);
      after_step(step + 1);
    }
    finish();
  }

  // Restores the newest checkpoint when asked to, and opens the ledger's next generation.
  void begin() {
    LoadedParent parent;
    if (request_.resume) parent = restore();
    first_step_ = parent.step;
    facts_.resumed_at = first_step_;
    facts_.steps = first_step_;
    const comm::ClockOffset clock = comm::own_clock_offset(group_);
    parallel_.set_clock_offset(clock.offset);
    if (request_.timing_only) return;
    if (recipe_.measure.trace_steps > 0) {
      trace_.emplace(recipe_, first_step_, parallel_.replicas().size(), clock, group_, services_.files,
                     request_.directory);
    }
    double generation = 0;
    if (group_.rank() == 0) generation = records::next_generation(services_.files, request_.directory);
    generation_ = static_cast<int>(comm::all_reduce_number(group_, generation, ReduceOp::kMax));
    facts_.generation = generation_;
    records::LedgerHeader header;
    header.generation = generation_;
    header.rank = group_.rank();
    header.ranks = group_.size();
    header.plan = plan_.options();
    header.parent = {parent.generation, parent.step};
    if (parallel_.owners() != spec::deal_replicas(facts_.replicas, facts_.ranks)) header.owners = parallel_.owners();
    ledger_.emplace(services_.files, request_.directory, header);
  }

  void tell_shares() {
    if (!report_ || shares_.micro_batch_ms.empty()) return;
    services_.events.note(fmt::format("replicas of the ranks: {} (one micro-batch took {:.2f} ms)",
                                      spec::describe_owners(facts_.owners), fmt::join(shares_.micro_batch_ms, ", ")));
  }

  struct LoadedParent {
    int generation = 0;
    std::int64_t step = 0;
  };

  LoadedParent restore() {
    const std::vector<spec::Stateful*> parts = trainer_.state();
    const auto loaded = elastic::load_newest(services_.files, group_, checkpoints(), parts);
    if (!loaded) {
      if (report_) services_.events.note("there is no checkpoint yet: the run starts from the beginning");
      return {};
    }
    const std::string digest = spec::recipe_digest(recipe_);
    if (loaded->meta.recipe_digest != digest) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{} was saved under another recipe: keys that decide the result have changed", loaded->path));
    }
    if (report_) services_.events.note(fmt::format("goes on from step {} ({})", loaded->meta.step, loaded->path));
    return {static_cast<int>(loaded->meta.generation), static_cast<std::int64_t>(loaded->meta.step)};
  }

  std::string checkpoints() const { return request_.directory + "/checkpoints"; }

  void train_step(std::int64_t step, records::Loader& loader) {
    const TimePoint begin = system_clock().now();
    records::StepBatch& input = loader.next(group_.timeout());
    timer_.add(Part::kInputPrepare, input.prepare);
    timer_.add(Part::kInputWait, input.waited);
    fault_.strike(step);
    if (fault_.spoils_input(step)) input.replicas.front().micro_batches.front().values.front() = std::nanf("");
    if (trace_) trace_->begin_step(step, begin, input);
    const parallel::StepResult result = trainer_.gradient(step, input, system_clock().now() - begin);
    if (trace_) trace_->after_gradient(result, parallel_.bucket_times());
    timer_.add(Part::kForward, result.forward);
    timer_.add(Part::kBackward, result.backward);
    timer_.add(Part::kCommExposed, result.exposed);
    timer_.add(Part::kWaitSlowest, result.wait_slowest);
    timer_.add(Part::kComm, covered(parallel_.bucket_times()));

    const double rate = update(step, result);
    if (trace_) trace_->after_update();
    commit(step, input);
    if (trace_) trace_->end_step();
    const observe::StepTimes times = timer_.end_step();
    statistics_.add(times);
    facts_.training += times.total;
    facts_.trained_samples += result.count;
    if (report_) tell(step, result, rate, times);
  }

  double update(std::int64_t step, const parallel::StepResult& result) {
    const auto span = timer_.measure(Part::kOptimizer);
    observe::process_memory().enter(observe::MemoryPhase::kUpdate);
    return trainer_.update(step, result);
  }

  void commit(std::int64_t step, const records::StepBatch& input) {
    ++facts_.trained_steps;
    facts_.steps = step + 1;
    if (!ledger_) return;
    for (const records::ReplicaBatches& replica : input.replicas) {
      std::vector<std::int64_t> ids;
      for (const records::Batch& batch : replica.micro_batches) {
        ids.insert(ids.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      }
      ledger_->append(step, replica.replica, ids);
    }
    ledger_->commit();
  }

  void tell(std::int64_t step, const parallel::StepResult& result, double rate, const observe::StepTimes& times) {
    report_->add_step({step, plan_.epoch_of(step), result.loss, rate, result.gradient_norm, result.count, times});
    report_->add_own_work(result.own_work_ms);
    const TimePoint now = system_clock().now();
    if (now - last_progress_ < kProgressEvery && step + 1 < total_steps_) return;
    last_progress_ = now;
    services_.events.progress(step + 1, total_steps_, plan_.epoch_of(step), result.loss,
                              report_->recent_samples_per_s());
  }

  // Evaluation and checkpoints, timed outside the step.
  void after_step(std::int64_t steps) {
    if (request_.timing_only) return;
    const std::int64_t per_epoch = plan_.steps_per_epoch();
    const std::int64_t every = recipe_.train.evaluate_every;
    if (every > 0 && steps % per_epoch == 0 && steps / per_epoch % every == 0 && steps < total_steps_) validate(steps);
    if (recipe_.checkpoint.every_steps > 0 && steps % recipe_.checkpoint.every_steps == 0 && steps < total_steps_) {
      save(steps);
    }
    timer_.begin_step();
  }

  void validate(std::int64_t steps) {
    if (task_.validation().indexes.empty()) return;
    const Evaluation found = evaluate_part("validation", steps, task_.validation());
    // A threshold that is chosen on the test part would flatter it.
    if (found.curve) threshold_ = found.curve->best_f1_threshold().value_or(threshold_);
    const std::string& metric = recipe_.train.target_metric;
    if (metric == "accuracy") facts_.reached_target = found.state.confusion.accuracy() >= recipe_.train.target;
    if (metric == "macro_f1") facts_.reached_target = found.state.confusion.macro_f1() >= recipe_.train.target;
    if (metric == "loss") facts_.reached_target = found.state.loss.mean() <= recipe_.train.target;
  }

  void test(std::int64_t steps) {
    const records::DataPart& part = task_.test();
    const Evaluation found = evaluate_part("test", steps, part);
    if (!report_) return;
    write_predictions(services_.files, request_.directory + "/predictions.csv", part, found.outcomes);
    for (const std::string& warning : found.warnings) services_.events.note("warning: test: " + warning);
    for (const eval::SliceFinding& finding : found.slices.findings) {
      services_.events.note("warning: test: " + finding.text());
    }
  }

  Evaluation evaluate_part(const std::string& name, std::int64_t steps, const records::DataPart& part) {
    const TimePoint begin = system_clock().now();
    if (report_) services_.events.phase("evaluation");
    parallel_.load_merged_buffers();
    Evaluation found = evaluate(trainer_.model(), part,
                                {recipe_.train.evaluation_batch, trainer_.type(), recipe_.data.slices}, group_);
    facts_.evaluation += system_clock().now() - begin;
    if (trace_) trace_->outside(observe::SpanKind::kEvaluation, begin);
    if (!report_) return found;
    const double own = found.curve ? found.curve->best_f1_threshold().value_or(threshold_) : threshold_;
    const double threshold = name == "test" ? threshold_ : own;
    report_->add_evaluation(name, steps, steps / plan_.steps_per_epoch(), found.to_json(threshold));
    services_.events.note(fmt::format("{} after step {}: loss {:.4f}, accuracy {:.4f}, macro F1 {:.4f}{}", name, steps,
                                      found.state.loss.mean(), found.state.confusion.accuracy(),
                                      found.state.confusion.macro_f1(),
                                      found.curve ? ranking_words(*found.curve, threshold) : ""));
    return found;
  }

  static std::string ranking_words(const eval::RankedCurve& curve, double threshold) {
    const auto area = [](std::optional<double> value) { return value ? fmt::format("{:.4f}", *value) : "undefined"; };
    return fmt::format(", ROC AUC {}, PR AUC {}, F1 {:.4f} at threshold {:.3g}", area(curve.roc_auc()),
                       area(curve.pr_auc()), curve.at(threshold).f1(), threshold);
  }

  // Which classes an epoch trains on, and which a part nearly lacks.
  void tell_classes(std::int64_t epoch) {
    if (!report_) return;
    const std::vector<std::int64_t> counts = task_.class_counts(epoch);
    report_->add_class_counts(epoch, task_.class_names(), counts);
    if (epoch != plan_.epoch_of(first_step_)) return;
    const records::DataPart validation = task_.validation();
    const std::vector<std::string> names = task_.class_names();
    std::vector<std::string> warnings = eval::part_warnings("training", counts, names);
    if (!validation.indexes.empty()) {
      const auto few = eval::part_warnings(
          "validation", records::count_classes(*validation.dataset, validation.indexes), names);
      warnings.insert(warnings.end(), few.begin(), few.end());
    }
    for (const std::string& warning : warnings) services_.events.note("warning: " + warning);
  }

  void save(std::int64_t steps) {
    const TimePoint begin = system_clock().now();
    if (report_) services_.events.phase("checkpoint");
    // What a checkpoint counts as done must be in the ledger first.
    if (ledger_) ledger_->sync();
    elastic::CheckpointMeta meta;
    meta.step = static_cast<std::uint64_t>(steps);
    meta.epoch = static_cast<std::uint64_t>(plan_.epoch_of(steps));
    meta.generation = static_cast<std::uint64_t>(generation_);
    meta.replicas = static_cast<std::uint64_t>(plan_.options().replicas);
    meta.recipe_digest = spec::recipe_digest(recipe_);
    const std::vector<spec::Stateful*> parts = trainer_.state();
    elastic::save_checkpoint(services_.files, group_, checkpoints(), meta, parts,
                             static_cast<int>(recipe_.checkpoint.keep));
    facts_.checkpoint += system_clock().now() - begin;
    if (trace_) trace_->outside(observe::SpanKind::kCheckpoint, begin);
  }

  void finish() {
    const std::int64_t steps = facts_.steps;
    facts_.parameters_digest = parallel_.digest();
    std::optional<nlohmann::ordered_json> ledger;
    if (!request_.timing_only) {
      if (recipe_.checkpoint.at_end && steps > first_step_) save(steps);
      if (!facts_.reached_target) validate(steps);
      test(steps);
      ledger_->finish(steps);
      comm::barrier(group_);
      if (report_) ledger = check_ledger();
    }
    facts_.by_rank = gather_summaries(group_, statistics_.summary());
    if (trace_) finish_trace();
    if (!report_) return;
    report_->finish(facts_, ledger);
    for (const std::string& warning : report_->slow_rank_warnings()) services_.events.note("warning: " + warning);
    services_.events.summary();
  }

  void finish_trace() {
    const std::optional<observe::Trace> trace = trace_->gather();
    if (!trace) return;
    observe::write_trace(services_.files, request_.directory + "/trace.json", *trace);
    std::vector<std::string> notes;
    facts_.trace = judge_trace(*trace, notes);
    for (const std::string& note : notes) services_.events.note("trace: " + note);
  }

  nlohmann::ordered_json check_ledger() {
    const records::LedgerReport report = records::check_ledger(services_.files, request_.directory);
    for (const std::string& problem : report.problems) log_warning("ledger: {}", problem);
    return {{"samples", report.samples},
            {"repeated", report.repeated},
            {"missing", report.missing},
            {"redone_samples", report.redone_samples},
            {"ok", report.ok()}};
  }

  const TimePoint started_ = system_clock().now();
  const RunRequest& request_;
  const RunServices& services_;
  const spec::Recipe& recipe_;
  PlantedFault fault_;
  comm::Group& group_;
  Task task_;
  std::unique_ptr<params::Model> model_;  // until the trainer has it
  const MeasuredShares shares_;
  Trainer trainer_;
  const spec::SamplePlan& plan_;
  parallel::DataParallel& parallel_;
  const std::int64_t total_steps_;

  std::int64_t first_step_ = 0;
  int generation_ = 1;
  double threshold_ = 0.5;
  std::optional<records::LedgerWriter> ledger_;
  observe::StepTimer timer_;
  observe::StepStatistics statistics_;
  std::optional<TraceCollector> trace_;
  std::optional<RunReport> report_;
  RunFacts facts_;
  TimePoint last_progress_{};
};

}  // namespace

void run(const RunRequest& request, const RunServices& services) { Run(request, services).go(); }

}  // namespace convoy::train

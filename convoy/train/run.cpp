#include "convoy/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/base/random.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/observe/step_timer.h"
#include "convoy/parallel/data/data_parallel.h"
#include "convoy/params/arena_allocator.h"
#include "convoy/params/optimizer.h"
#include "convoy/records/ledger.h"
#include "convoy/records/ledger_check.h"
#include "convoy/spec/rate_schedule.h"
#include "convoy/train/evaluation.h"
#include "convoy/train/image_task.h"
#include "convoy/train/planted_fault.h"
#include "convoy/train/run_report.h"

namespace convoy::train {
namespace {

using observe::MemoryPhase;
using observe::Part;

// At most so many progress events a second: they are for people.
constexpr Duration kProgressEvery = std::chrono::milliseconds(100);

spec::SamplePlanOptions plan_options(const spec::Recipe& recipe, std::int64_t samples, int replicas) {
  spec::SamplePlanOptions options;
  options.samples = samples;
  options.global_batch = recipe.train.global_batch;
  options.replicas = replicas;
  options.accumulation = static_cast<int>(recipe.train.accumulation);
  options.drop_last = recipe.train.drop_last;
  options.seed = static_cast<std::uint64_t>(recipe.task.seed);
  return options;
}

parallel::DataParallelOptions parallel_options(const spec::Recipe& recipe, int replicas) {
  parallel::DataParallelOptions options;
  options.replicas = replicas;
  options.bucket_bytes = recipe.parallel.bucket_bytes;
  options.overlap = recipe.parallel.overlap;
  options.buffer_merge = parallel::to_buffer_merge(recipe.replicas.buffer_merge);
  options.seed = static_cast<std::uint64_t>(recipe.task.seed);
  return options;
}

std::unique_ptr<params::Model> make_model(const spec::Recipe& recipe, const ImageTask& task,
                                          const zoo::Registry& models) {
  torch::manual_seed(stream_seed(StreamPurpose::kInitialisation, {static_cast<std::uint64_t>(recipe.task.seed)}));
  auto model = models.make({recipe.model, task.sample_shape(), task.classes()});
  model->train(true);
  return model;
}

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

// Everything that one process holds while it trains.
class Run {
 public:
  Run(const RunRequest& request, const RunServices& services)
      : request_(request),
        services_(services),
        recipe_(request.recipe),
        group_(services.group),
        replicas_(recipe_.replicas.mode == "off" ? group_.size() : static_cast<int>(recipe_.replicas.count)),
        fault_(group_.rank()),
        task_(recipe_.data, services.files, request.directory, group_),
        plan_(plan_options(recipe_, task_.samples(), replicas_)),
        model_(make_model(recipe_, task_, services.models)),
        parallel_(*model_, group_, parallel_options(recipe_, replicas_)),
        optimizer_(parallel_.space(), params::OptimizerOptions::from(recipe_.train)),
        total_steps_(recipe_.train.steps > 0 ? recipe_.train.steps : recipe_.train.epochs * plan_.steps_per_epoch()) {
    optimizer_.set_owner(group_.rank() == 0);
    if (group_.rank() == 0) report_.emplace(services.files, request.directory, recipe_);
    facts_.ranks = group_.size();
    facts_.replicas = replicas_;
  }

  void go() {
    begin();
    note_peak(MemoryPhase::kInitialisation);
    facts_.setup = system_clock().now() - started_;
    auto loader = task_.load(plan_, parallel_.replicas(), first_step_, std::max(first_step_, total_steps_));
    timer_.begin_step();
    for (std::int64_t step = first_step_; step < total_steps_ && !facts_.reached_target; ++step) {
      train_step(step, *loader);
      after_step(step + 1);
    }
    finish();
  }

 private:
  // Restores the newest checkpoint when asked to, and opens the ledger's next generation.
  void begin() {
    LoadedParent parent;
    if (request_.resume) parent = restore();
    first_step_ = parent.step;
    facts_.resumed_at = first_step_;
    facts_.steps = first_step_;
    if (request_.timing_only) return;
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
    ledger_.emplace(services_.files, request_.directory, header);
  }

  struct LoadedParent {
    int generation = 0;
    std::int64_t step = 0;
  };

  LoadedParent restore() {
    const std::vector<spec::Stateful*> parts{&parallel_, &optimizer_};
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
    records::StepBatch& input = loader.next(group_.timeout());
    timer_.add(Part::kInputPrepare, input.prepare);
    timer_.add(Part::kInputWait, input.waited);
    fault_.strike(step);
    if (fault_.spoils_input(step)) input.replicas.front().micro_batches.front().pixels.front() = std::nanf("");
    const auto type = params::to_scalar_type(parallel_.space().dtype());
    std::vector<std::vector<params::Batch>> batches;
    std::int64_t batch_bytes = 0;
    for (records::ReplicaBatches& replica : input.replicas) {
      batches.emplace_back();
      for (records::Batch& batch : replica.micro_batches) {
        batches.back().push_back(to_tensors(batch, type));
        batch_bytes += static_cast<std::int64_t>(batch.pixels.size() * sizeof(float));
      }
    }
    facts_.memory.batch = std::max(facts_.memory.batch, batch_bytes * (recipe_.data.prefetch + 1));

    const parallel::StepResult result = parallel_.step(step, batches);
    timer_.add(Part::kForward, result.forward);
    timer_.add(Part::kBackward, result.backward);
    timer_.add(Part::kCommExposed, result.exposed);
    timer_.add(Part::kWaitSlowest, result.wait_slowest);
    timer_.add(Part::kComm, covered(parallel_.bucket_times()));
    note_peak(MemoryPhase::kForward, result.forward_peak_bytes);
    note_peak(MemoryPhase::kBackward, result.backward_peak_bytes);
    facts_.memory.gradient_partials = std::max(facts_.memory.gradient_partials, result.partial_bytes);

    const double rate = spec::learning_rate(recipe_.train, position(step, result.count));
    update(result, rate);
    commit(step, input);
    const observe::StepTimes times = timer_.end_step();
    facts_.training += times.total;
    facts_.trained_samples += result.count;
    if (report_) tell(step, result, rate, times);
  }

  spec::RunPosition position(std::int64_t step, std::int64_t count) const {
    return {step, plan_.samples_before(step), count, total_steps_, plan_.samples_before(total_steps_)};
  }

  void update(const parallel::StepResult& result, double rate) {
    const auto span = timer_.measure(Part::kOptimizer);
    params::GradientSums sums = result.gradient;
    // As torch::nn::utils::clip_grad_norm_ does, a little below the limit.
    if (recipe_.train.clip_norm > 0) {
      sums.scale.clip = std::min(1.0, recipe_.train.clip_norm / (result.gradient_norm + 1e-6));
    }
    params::reset_tensor_memory_peak();
    optimizer_.update(sums, rate);
    note_peak(MemoryPhase::kUpdate);
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
    const eval::ClassificationState state = evaluate_part("validation", steps, task_.validation());
    const std::string& metric = recipe_.train.target_metric;
    if (metric == "accuracy") facts_.reached_target = state.confusion.accuracy() >= recipe_.train.target;
    if (metric == "macro_f1") facts_.reached_target = state.confusion.macro_f1() >= recipe_.train.target;
    if (metric == "loss") facts_.reached_target = state.loss.mean() <= recipe_.train.target;
  }

  eval::ClassificationState evaluate_part(const std::string& name, std::int64_t steps, const EvaluationPart& part) {
    const TimePoint begin = system_clock().now();
    if (report_) services_.events.phase("evaluation");
    parallel_.load_merged_buffers();
    const eval::ClassificationState state =
        evaluate(*model_, task_, part, recipe_.train.evaluation_batch,
                 params::to_scalar_type(parallel_.space().dtype()), group_);
    facts_.evaluation += system_clock().now() - begin;
    if (report_) {
      report_->add_evaluation(name, steps, steps / plan_.steps_per_epoch(), state);
      services_.events.note(fmt::format("{} after step {}: loss {:.4f}, accuracy {:.4f}, macro F1 {:.4f}", name, steps,
                                        state.loss.mean(), state.confusion.accuracy(), state.confusion.macro_f1()));
    }
    return state;
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
    meta.replicas = static_cast<std::uint64_t>(replicas_);
    meta.recipe_digest = spec::recipe_digest(recipe_);
    const std::vector<spec::Stateful*> parts{&parallel_, &optimizer_};
    elastic::save_checkpoint(services_.files, group_, checkpoints(), meta, parts,
                             static_cast<int>(recipe_.checkpoint.keep));
    facts_.checkpoint += system_clock().now() - begin;
  }

  void finish() {
    const std::int64_t steps = facts_.steps;
    facts_.parameters_digest = parallel_.digest();
    std::optional<nlohmann::ordered_json> ledger;
    if (!request_.timing_only) {
      if (recipe_.checkpoint.at_end && steps > first_step_) save(steps);
      if (!facts_.reached_target) validate(steps);
      evaluate_part("test", steps, task_.test());
      ledger_->finish(steps);
      comm::barrier(group_);
      if (report_) ledger = check_ledger();
    }
    facts_.memory.parameters = static_cast<std::int64_t>(parallel_.space().values().nbytes());
    facts_.memory.gradients = parallel_.gradient_bytes();
    facts_.memory.optimizer = optimizer_.state_bytes();
    if (!report_) return;
    report_->finish(facts_, ledger);
    services_.events.summary();
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

  void note_peak(MemoryPhase phase) { note_peak(phase, params::tensor_memory().peak_bytes); }
  void note_peak(MemoryPhase phase, std::int64_t bytes) {
    std::int64_t& peak = facts_.memory.tensor_peak[phase];
    peak = std::max(peak, bytes);
  }

  const TimePoint started_ = system_clock().now();
  const RunRequest& request_;
  const RunServices& services_;
  const spec::Recipe& recipe_;
  comm::Group& group_;
  const int replicas_;
  const PlantedFault fault_;
  ImageTask task_;
  const spec::SamplePlan plan_;
  std::unique_ptr<params::Model> model_;
  parallel::DataParallel parallel_;
  params::Optimizer optimizer_;
  const std::int64_t total_steps_;

  std::int64_t first_step_ = 0;
  int generation_ = 1;
  std::optional<records::LedgerWriter> ledger_;
  observe::StepTimer timer_;
  std::optional<RunReport> report_;
  RunFacts facts_;
  TimePoint last_progress_{};
};

}  // namespace

void run(const RunRequest& request, const RunServices& services) { Run(request, services).go(); }

}  // namespace convoy::train

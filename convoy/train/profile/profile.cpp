#include "convoy/train/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/base/text.h"
#include "convoy/comm/shared_memory/shared_arena.h"
#include "convoy/elastic/checkpoint/checkpoint.h"
#include "convoy/law/memory.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/train/evaluation.h"
#include "convoy/train/profile/device_timer.h"
#include "convoy/train/profile/layer_recorder.h"
#include "convoy/train/profile/pass_memory.h"
#include "convoy/train/profile/profile_report.h"
#include "convoy/train/task.h"
#include "convoy/train/trainer.h"

namespace convoy::train {
namespace {

using observe::MemoryCategory;
using observe::Part;

// A pass of the largest batch is tried where it takes no longer and no more than this, and leaves others half of what
// the machine has to give.
constexpr double kLongestTry_s = 10.0;
constexpr std::int64_t kLargestTry_bytes = std::int64_t{4} << 30;
// Evaluation is timed over so many batches, and the whole is taken to go at their rate.
constexpr std::int64_t kTimedEvaluationBatches = 2;

// How the steps that a recipe has are used.
struct Division {
  std::int64_t warmup = 0;
  std::int64_t measured = 0;
  std::int64_t layers = 0;
  bool ended_early = false;
  std::int64_t all() const { return warmup + measured + layers; }
};

Division divide(const ProfileRequest& asked, std::int64_t available) {
  Division division{asked.warmup, asked.steps, asked.layer_steps, false};
  const std::int64_t wanted = division.all();
  if (wanted <= available) return division;
  division.ended_early = true;
  division.warmup = available * asked.warmup / wanted;
  division.layers = available < 2 ? 0 : std::max<std::int64_t>(1, available * asked.layer_steps / wanted);
  division.measured = available - division.warmup - division.layers;
  return division;
}

class Profile {
 public:
  Profile(const RunRequest& request, const ProfileRequest& profile, const RunServices& services)
      : request_(request),
        profile_(profile),
        services_(services),
        recipe_(request.recipe),
        task_(recipe_, services.files, request.directory, services.group),
        trainer_(recipe_, task_.samples(), services.group, make_recorded()),
        division_(divide(profile, trainer_.total_steps())) {}

  void go() {
    describe();
    facts_.estimate.setup_s = to_seconds(system_clock().now() - started_);
    auto loader = task_.load(trainer_.plan(), trainer_.parallel().replicas(), 0, division_.all());
    measure_steps(*loader);
    note_memory();
    measure_layers(*loader);
    estimate_run();
    facts_.ceilings = measure_ceilings(trainer_.type());
    fit_batches();
    write_atomic(services_.files, request_.directory + "/" + kProfileFile, to_json(facts_).dump(2) + "\n");
  }

 private:
  std::unique_ptr<params::Model> make_recorded() {
    auto recorded = std::make_unique<RecordedModel>(make_model(recipe_, task_, services_.models));
    model_ = recorded.get();
    return recorded;
  }

  void describe() {
    facts_.task = recipe_.task.name;
    facts_.model = recipe_.model.script.empty() ? recipe_.model.name : recipe_.model.script;
    facts_.replicas = trainer_.plan().options().replicas;
    facts_.accumulation = recipe_.train.accumulation;
    facts_.global_batch = recipe_.train.global_batch;
    const std::int64_t passes = facts_.replicas * facts_.accumulation;
    facts_.local_batch = (facts_.global_batch + passes - 1) / passes;
    facts_.dtype = trainer_.parallel().space().dtype();
    facts_.warmup_steps = division_.warmup;
    facts_.ended_early = division_.ended_early;
    for (const params::ParameterSlot& slot : trainer_.parallel().space().slots()) {
      facts_.module_elements[module_path(slot.name)] += slot.elements;
    }
  }

  // One step as a run has it: input, gradient, update.
  records::StepBatch& train_step(records::Loader& loader, observe::StepTimer& timer) {
    records::StepBatch& input = loader.next(services_.group.timeout());
    timer.add(Part::kInputPrepare, input.prepare);
    timer.add(Part::kInputWait, input.waited);
    const parallel::StepResult result = trainer_.gradient(input.step, input, input.waited);
    timer.add(Part::kForward, result.forward);
    timer.add(Part::kBackward, result.backward);
    timer.add(Part::kCommExposed, result.exposed);
    {
      const auto span = timer.measure(Part::kOptimizer);
      observe::process_memory().enter(observe::MemoryPhase::kUpdate);
      trainer_.update(input.step, result);
    }
    last_ = result;
    services_.events.progress(input.step + 1, division_.all(), input.epoch, result.loss, 0.0);
    return input;
  }

  void measure_steps(records::Loader& loader) {
    observe::StepTimer timer;
    for (std::int64_t step = 0; step < division_.warmup + division_.measured; ++step) {
      timer.begin_step();
      train_step(loader, timer);
      const observe::StepTimes times = timer.end_step();
      if (step < division_.warmup) continue;
      facts_.steps.push_back(times);
      facts_.samples += last_.count;
    }
  }

  // Later steps watch operators and try other batches: what a run takes is what was taken until here.
  void note_memory() {
    const observe::MemoryMeter& meter = observe::process_memory();
    facts_.resident = observe::read_resident_memory(local_files());
    facts_.memory = observe::memory_json(meter, facts_.resident);
    facts_.memory["arena_peak"] = comm::process_arena().peak();
    facts_.peak = meter.peak();
    batch_highest_ = meter.highest()[static_cast<std::size_t>(MemoryCategory::kBatch)];
    other_bytes_ = meter.current()[static_cast<std::size_t>(MemoryCategory::kOther)];
    law::StateShape shape;
    shape.parameters.clear();
    const auto& slots = trainer_.parallel().space().slots();
    for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) shape.parameters.push_back(slot->elements);
    shape.element_bytes = static_cast<std::int64_t>(element_bytes(facts_.dtype));
    shape.moments = law::optimizer_moments(recipe_.train.optimizer, recipe_.train.momentum);
    shape.additions = parallel::additions_by_replica(facts_.replicas, trainer_.parallel().replicas());
    facts_.state = law::state_bytes(shape);
    facts_.moments = shape.moments;
  }

  void measure_layers(records::Loader& loader) {
    const std::unique_ptr<DeviceTimer> device = make_processor_timer();
    LayerRecorder recorder(*device);
    observe::StepTimer timer;
    if (division_.layers == 0) return;
    recorder.start(trainer_.parallel().space(), model_->buffers());
    model_->tell(&recorder);
    for (std::int64_t step = 0; step < division_.layers; ++step) {
      device->reset();
      device->synchronise();
      records::StepBatch& input = train_step(loader, timer);
      device->synchronise();
      const double forward_ms = to_ms(recorder.forward_time());
      recorder.take_passes(facts_.layers);
      facts_.layers.end_step(forward_ms, to_ms(last_.backward));
      keep_sample_batch(input);
    }
    model_->tell(nullptr);
    recorder.stop();
  }

  // Samples that later tries are made of.
  void keep_sample_batch(records::StepBatch& input) {
    for (records::ReplicaBatches& replica : input.replicas) {
      for (records::Batch& batch : replica.micro_batches) {
        if (sample_.input.defined() || batch.count() == 0) continue;
        const params::Batch borrowed = to_tensors(batch, trainer_.type());
        const observe::MemoryScope scope(MemoryCategory::kBatch);
        sample_.input = borrowed.input.clone();
        sample_.target = borrowed.target.clone();
        if (borrowed.weight.defined()) sample_.weight = borrowed.weight.clone();
      }
    }
  }

  void estimate_run() {
    RunEstimate& estimate = facts_.estimate;
    estimate.steps = trainer_.total_steps();
    double steps_s = 0.0;
    for (const observe::StepTimes& step : facts_.steps) steps_s += to_seconds(step.total);
    estimate.training_s = steps_s / static_cast<double>(facts_.steps.size()) * static_cast<double>(estimate.steps);
    const std::int64_t validation = static_cast<std::int64_t>(task_.validation().indexes.size());
    const std::int64_t per_epoch = trainer_.plan().steps_per_epoch() * recipe_.train.evaluate_every;
    estimate.validations = validation == 0 ? 0 : 1 + (per_epoch > 0 ? (estimate.steps - 1) / per_epoch : 0);
    const auto test = static_cast<std::int64_t>(task_.test().indexes.size());
    estimate.evaluation_s =
        evaluation_seconds_per_sample() * static_cast<double>(estimate.validations * validation + test);
    const std::int64_t every = recipe_.checkpoint.every_steps;
    estimate.checkpoints = (every > 0 ? (estimate.steps - 1) / every : 0) + (recipe_.checkpoint.at_end ? 1 : 0);
    if (estimate.checkpoints > 0)
      estimate.checkpoint_s = checkpoint_seconds() * static_cast<double>(estimate.checkpoints);
  }

  double evaluation_seconds_per_sample() {
    records::DataPart part = task_.validation().indexes.empty() ? task_.test() : task_.validation();
    const auto most = static_cast<std::size_t>(kTimedEvaluationBatches * recipe_.train.evaluation_batch);
    std::vector<std::int64_t> few(
        part.indexes.begin(), part.indexes.begin() + static_cast<std::ptrdiff_t>(std::min(most, part.indexes.size())));
    if (few.empty()) return 0.0;
    part.indexes = few;
    const TimePoint begin = system_clock().now();
    trainer_.parallel().load_merged_buffers();
    evaluate(trainer_.model(), part, {recipe_.train.evaluation_batch, trainer_.type(), {}}, services_.group);
    return to_seconds(system_clock().now() - begin) / static_cast<double>(few.size());
  }

  double checkpoint_seconds() {
    const TimePoint begin = system_clock().now();
    elastic::CheckpointMeta meta;
    meta.step = static_cast<std::uint64_t>(division_.all());
    meta.replicas = static_cast<std::uint64_t>(facts_.replicas);
    meta.recipe_digest = spec::recipe_digest(recipe_);
    const std::string place = request_.directory + "/checkpoints";
    elastic::save_checkpoint(services_.files, services_.group, place, meta, trainer_.state(),
                             static_cast<int>(recipe_.checkpoint.keep));
    const double seconds = to_seconds(system_clock().now() - begin);
    services_.files.remove(place);
    return seconds;
  }

  TriedPass try_samples(std::int64_t samples) {
    return try_pass(trainer_.model(), trainer_.parallel().space(), sample_, samples);
  }

  void fit_batches() {
    BatchFacts& batch = facts_.batch;
    batch.limit = profile_.memory_limit_bytes > 0 ? MemoryLimit{profile_.memory_limit_bytes, "option"}
                                                  : read_memory_limit(local_files());
    if (facts_.resident) {
      batch.taken_bytes = std::max<std::int64_t>(0, facts_.resident->peak_bytes - facts_.peak.total);
    }
    const std::int64_t one_gradient =
        trainer_.parallel().space().parameter_elements() * static_cast<std::int64_t>(element_bytes(facts_.dtype));
    const law::StateBytes& state = facts_.state;
    batch.fixed_bytes = state.parameters + state.gradients + state.optimizer + other_bytes_ +
                        std::max<std::int64_t>(0, state.gradient_partials - one_gradient);
    batch.input_bytes_per_sample = static_cast<double>(batch_highest_) / static_cast<double>(facts_.local_batch);
    if (!sample_.input.defined()) {
      batch.untried = "the recipe has a single step: no pass is left to measure";
      return;
    }
    const std::int64_t half = std::max<std::int64_t>(1, facts_.local_batch / 2);
    batch.smaller = try_samples(half).point;
    const TriedPass whole = try_samples(std::max(facts_.local_batch, half + 1));
    batch.larger = whole.point;
    batch.fit = fit_batch(batch.smaller, batch.larger);
    find_largest(to_seconds(whole.time) / static_cast<double>(whole.point.samples));
  }

  // The line may bend beyond what was measured: a try that takes more than there is room for moves its far point there.
  void find_largest(double seconds_per_sample) {
    BatchFacts& batch = facts_.batch;
    const double room = static_cast<double>(batch.limit.bytes - batch.taken_bytes - batch.fixed_bytes);
    const auto all = [&] {
      BatchFit fit = batch.fit;
      fit.bytes_per_sample += batch.input_bytes_per_sample;
      return largest_batch(fit, room);
    };
    batch.largest = all();
    if (batch.largest == 0) {
      batch.untried = "not even one sample fits";
      return;
    }
    for (int round = 0; round < 3; ++round) {
      const double expected_s = seconds_per_sample * static_cast<double>(batch.largest);
      if (expected_s > kLongestTry_s) {
        batch.untried = fmt::format("a pass of this size would take about {:.0f} s", expected_s);
        return;
      }
      const std::int64_t most = std::min(kLargestTry_bytes, read_available_memory(local_files()) / 2);
      if (batch.peak_bytes(batch.largest) > static_cast<double>(most)) {
        batch.untried = fmt::format("a pass of this size would take {}, and no more than {} are tried",
                                    format_bytes(static_cast<std::uint64_t>(batch.peak_bytes(batch.largest))),
                                    format_bytes(static_cast<std::uint64_t>(most)));
        return;
      }
      batch.tried = try_samples(batch.largest).point;
      const double input = batch.input_bytes_per_sample * static_cast<double>(batch.largest);
      if (static_cast<double>(batch.tried->bytes) + input <= room || batch.largest <= batch.smaller.samples) return;
      batch.larger = *batch.tried;
      batch.fit = fit_batch(batch.smaller, batch.larger);
      batch.largest = std::max<std::int64_t>(1, all());
    }
  }

  const TimePoint started_ = system_clock().now();
  const RunRequest& request_;
  const ProfileRequest& profile_;
  const RunServices& services_;
  const spec::Recipe& recipe_;
  Task task_;
  RecordedModel* model_ = nullptr;  // owned by the trainer
  Trainer trainer_;
  const Division division_;
  ProfileFacts facts_;
  parallel::StepResult last_;
  params::Batch sample_;
  std::int64_t batch_highest_ = 0;
  std::int64_t other_bytes_ = 0;
};

}  // namespace

void run_profile(const RunRequest& request, const ProfileRequest& profile, const RunServices& services) {
  if (services.group.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a profile is of one process, not of {}", services.group.size()));
  }
  Profile(request, profile, services).go();
}

}  // namespace convoy::train

#include "convoy/train/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"
#include "convoy/elastic/probe/probe.h"
#include "convoy/spec/rate_schedule.h"
#include "convoy/train/task.h"
#include "convoy/train/trainer.h"
#include "convoy/train/verify/probed_model.h"
#include "convoy/train/verify/reference_trainer.h"
#include "convoy/train/verify/step_fault.h"

namespace convoy::train {
namespace {

using elastic::ProbeStep;
using elastic::ProbeTensor;

// Of following epochs only which samples come; so many steps of each.
constexpr std::int64_t kForeseenSteps = 4;
constexpr std::int64_t kForeseenEpochs = 2;
// Gradients of single micro-batches are kept for every step of models up to this size, else for the first and last step.
constexpr std::int64_t kSmallModel = 1 << 20;

struct StepRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool trained = true;
};

// What is recorded: the first steps, the short last batch of the epoch, and the samples of the epochs after it.
std::vector<StepRange> probed_steps(const spec::SamplePlan& plan, std::int64_t steps) {
  const std::int64_t per_epoch = plan.steps_per_epoch();
  std::vector<StepRange> ranges{{0, steps, true}};
  const auto last = static_cast<std::int64_t>(plan.step_samples(per_epoch - 1).size());
  if (per_epoch > steps && last < plan.options().global_batch) ranges.push_back({per_epoch - 1, per_epoch, true});
  for (std::int64_t epoch = 1; epoch <= kForeseenEpochs; ++epoch) {
    const std::int64_t begin = std::max(steps, epoch * per_epoch);
    const std::int64_t end = epoch * per_epoch + std::min(per_epoch, kForeseenSteps);
    if (begin < end) ranges.push_back({begin, end, false});
  }
  return ranges;
}

ProbeTensor to_probe(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  ProbeTensor probe{params::to_dtype(dense.scalar_type()), dense.sizes().vec(), {}};
  probe.bytes.resize(dense.nbytes());
  if (!probe.bytes.empty()) std::memcpy(probe.bytes.data(), dense.data_ptr(), probe.bytes.size());
  return probe;
}

std::string digest(const torch::Tensor& tensor) {
  Hasher hasher;
  hasher.update(tensor.data_ptr(), tensor.nbytes());
  return hasher.hex();
}

std::string merged_digest(params::Model& model) {
  Hasher hasher;
  for (const params::NamedTensor& buffer : model.buffers()) hasher.update(buffer.tensor.data_ptr(), buffer.tensor.nbytes());
  return hasher.hex();
}

// The micro-batches of a step, with the notes of the forward passes that those with samples had.
void add_parts(ProbeStep& record, const records::StepBatch& input, const std::vector<ForwardNote>& notes) {
  std::size_t next = 0;
  for (const records::ReplicaBatches& replica : input.replicas) {
    for (std::size_t i = 0; i < replica.micro_batches.size(); ++i) {
      elastic::ProbePart part;
      part.replica = replica.replica;
      part.micro_batch = static_cast<int>(i);
      part.samples = replica.micro_batches[i].sample_ids;
      if (!part.samples.empty() && next < notes.size()) {
        part.loss = notes[next].loss;
        part.counted = notes[next].counted;
        part.random = notes[next].random;
        ++next;
      }
      record.parts.push_back(std::move(part));
    }
  }
}

void add_parameters(ProbeStep& record, const params::FlatSpace& space) {
  for (const params::ParameterSlot& slot : space.slots()) record.tensors["parameter/" + slot.name] = to_probe(slot.tensor);
}

void add_gradient(ProbeStep& record, const params::FlatSpace& space, const torch::Tensor& sums, double count) {
  for (const params::ParameterSlot& slot : space.slots()) {
    record.tensors["gradient/" + slot.name] = to_probe(space.view(sums, slot) / count);
  }
}

void write_facts(const RunServices& services, const std::string& directory, const spec::SamplePlan& plan,
                 const params::FlatSpace& space) {
  const nlohmann::ordered_json facts = {{"replicas", plan.options().replicas},
                                        {"accumulation", plan.options().accumulation},
                                        {"steps_per_epoch", plan.steps_per_epoch()},
                                        {"samples", plan.options().samples},
                                        {"parameters", space.parameter_elements()},
                                        {"type", to_string(space.dtype())}};
  write_atomic(services.files, directory + "/probe.json", facts.dump(2) + "\n");
}

class RanksProbe {
 public:
  RanksProbe(const RunRequest& request, const ProbeRequest& probe, const RunServices& services)
      : request_(request),
        probe_(probe),
        services_(services),
        group_(services.group),
        task_(request.recipe, services.files, request.directory, group_),
        fault_(group_.rank(), spec::deal_replicas(replica_count(request.recipe, group_.size()), group_.size())),
        writer_(services.files, request.directory + "/probe", group_.rank()),
        trainer_(request.recipe, task_.samples(), group_, make_probed()) {}

  void go() {
    record_initial();
    for (const StepRange& range : probed_steps(trainer_.plan(), probe_.steps)) {
      const auto loader = task_.load(trainer_.plan(), trainer_.parallel().replicas(), range.begin, range.end);
      for (std::int64_t step = range.begin; step < range.end; ++step) {
        records::StepBatch& input = loader->next(group_.timeout());
        fault_.spoil(input, trainer_.plan(), task_.training_source());
        range.trained ? train(input) : foresee(input);
      }
    }
    if (group_.rank() == 0) write_facts(services_, request_.directory, trainer_.plan(), trainer_.parallel().space());
  }

 private:
  std::unique_ptr<params::Model> make_probed() {
    auto probed = std::make_unique<ProbedModel>(make_model(request_.recipe, task_, services_.models));
    probed_ = probed.get();
    return fault_.wrap(std::move(probed));
  }

  void record_initial() {
    ProbeStep record;
    add_state(record);
    writer_.add(record);
  }

  void foresee(const records::StepBatch& input) {
    ProbeStep record;
    record.step = input.step;
    record.epoch = input.epoch;
    add_parts(record, input, {});
    writer_.add(record);
  }

  void train(records::StepBatch& input) {
    ProbeStep record;
    record.step = input.step;
    record.epoch = input.epoch;
    record.trained = true;
    const parallel::StepResult result = trainer_.gradient(input.step, input);
    add_parts(record, input, probed_->take_notes());
    record.digests["gradient"] = digest(result.gradient.flat);
    if (group_.rank() == 0) {
      add_gradient(record, trainer_.parallel().space(), result.gradient.flat, result.gradient.scale.count);
    }
    trainer_.update(input.step, result);
    add_state(record);
    writer_.add(record);
    services_.events.progress(input.step + 1, probe_.steps, input.epoch, result.loss, 0.0);
  }

  void add_state(ProbeStep& record) {
    params::FlatSpace& space = trainer_.parallel().space();
    record.digests["parameters"] = digest(space.values());
    if (group_.rank() == 0) add_parameters(record, space);
    for (const spec::StateEntry& entry : trainer_.parallel().state()) {
      if (!entry.name.starts_with("replica.")) continue;
      ProbeTensor tensor{entry.dtype, entry.global_shape, {}};
      tensor.bytes.assign(entry.data, entry.data + static_cast<std::size_t>(entry.count) * element_bytes(entry.dtype));
      record.tensors[entry.name] = std::move(tensor);
    }
    trainer_.parallel().load_merged_buffers();
    record.digests["merged"] = merged_digest(*probed_);
    if (group_.rank() != 0) return;
    for (const params::NamedTensor& buffer : probed_->buffers()) {
      record.tensors["merged/" + buffer.name] = to_probe(buffer.tensor);
    }
  }

  const RunRequest& request_;
  const ProbeRequest& probe_;
  const RunServices& services_;
  comm::Group& group_;
  Task task_;
  const StepFault fault_;
  elastic::ProbeWriter writer_;
  ProbedModel* probed_ = nullptr;  // owned by the trainer
  Trainer trainer_;
};

class ReferenceProbe {
 public:
  ReferenceProbe(const RunRequest& request, const ProbeRequest& probe, const RunServices& services)
      : request_(request),
        probe_(probe),
        services_(services),
        replicas_(replica_count(request.recipe, probe.reference_ranks)),
        task_(request.recipe, services.files, request.directory, services.group),
        plan_(plan_options(request.recipe, task_.samples(), replicas_)),
        writer_(services.files, request.directory + "/probe", 0),
        model_(make_model(request.recipe, task_, services.models)),
        trainer_(model_, request.recipe, replicas_) {}

  void go() {
    ProbeStep initial;
    add_state(initial);
    writer_.add(initial);
    for (const StepRange& range : probed_steps(plan_, probe_.steps)) {
      const auto loader = task_.load(plan_, {0, replicas_}, range.begin, range.end);
      for (std::int64_t step = range.begin; step < range.end; ++step) {
        records::StepBatch& input = loader->next(services_.group.timeout());
        ProbeStep record;
        record.step = step;
        record.epoch = input.epoch;
        record.trained = range.trained;
        if (range.trained) train(input, range, record);
        add_parts(record, input, model_.take_notes());
        writer_.add(record);
      }
    }
    write_facts(services_, request_.directory, plan_, trainer_.space());
  }

 private:
  void train(records::StepBatch& input, const StepRange& range, ProbeStep& record) {
    const params::FlatSpace& space = trainer_.space();
    const bool with_parts =
        space.elements() <= kSmallModel || input.step == range.begin || input.step + 1 == range.end;
    ReferenceTrainer::PartSink parts;
    if (with_parts) {
      parts = [&](int replica, int micro_batch, std::size_t slot, const torch::Tensor& gradient) {
        record.tensors[fmt::format("part.{}.{}/{}", replica, micro_batch, space.slots()[slot].name)] = to_probe(gradient);
      };
    }
    trainer_.gradient(input.step, input, parts);
    add_gradient(record, space, trainer_.sums(), trainer_.counted());
    const std::int64_t total = request_.recipe.train.steps > 0 ? request_.recipe.train.steps
                                                               : request_.recipe.train.epochs * plan_.steps_per_epoch();
    trainer_.update(spec::learning_rate(request_.recipe.train,
                                        {input.step, plan_.samples_before(input.step),
                                         static_cast<std::int64_t>(trainer_.counted()), total,
                                         plan_.samples_before(total)}));
    add_state(record);
    services_.events.progress(input.step + 1, probe_.steps, input.epoch, 0.0, 0.0);
  }

  void add_state(ProbeStep& record) {
    add_parameters(record, trainer_.space());
    const std::vector<params::NamedTensor> buffers = model_.buffers();
    const std::vector<torch::Tensor> merged = trainer_.merged_buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      record.tensors["merged/" + buffers[i].name] = to_probe(merged[i]);
      for (int replica = 0; replica < replicas_; ++replica) {
        record.tensors[fmt::format("replica.{}/{}", replica, buffers[i].name)] =
            to_probe(trainer_.buffers(replica)[i]);
      }
    }
  }

  const RunRequest& request_;
  const ProbeRequest& probe_;
  const RunServices& services_;
  const int replicas_;
  Task task_;
  const spec::SamplePlan plan_;
  elastic::ProbeWriter writer_;
  ProbedModel model_;
  ReferenceTrainer trainer_;
};

}  // namespace

void run_probe(const RunRequest& request, const ProbeRequest& probe, const RunServices& services) {
  services.files.make_directories(request.directory + "/probe");
  if (probe.reference) {
    CONVOY_CHECK(services.group.size() == 1, "the reference runs in one process");
    ReferenceProbe(request, probe, services).go();
  } else {
    RanksProbe(request, probe, services).go();
  }
}

}  // namespace convoy::train

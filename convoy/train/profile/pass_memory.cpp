#include "convoy/train/profile/pass_memory.h"

#include <algorithm>

#include "convoy/observe/memory_meter.h"

namespace convoy::train {
namespace {

params::Batch take_samples(const params::Batch& batch, std::int64_t samples) {
  const observe::MemoryScope scope(observe::MemoryCategory::kBatch);
  const torch::Tensor picked = torch::arange(samples).remainder(batch.input.size(0));
  params::Batch taken;
  taken.input = batch.input.index_select(0, picked);
  if (batch.target.defined()) taken.target = batch.target.index_select(0, picked);
  if (batch.weight.defined()) taken.weight = batch.weight.index_select(0, picked);
  return taken;
}

}  // namespace

TriedPass try_pass(params::Model& model, const params::FlatSpace& space, const params::Batch& batch,
                   std::int64_t samples) {
  observe::MemoryMeter& memory = observe::process_memory();
  const params::Batch taken = take_samples(batch, samples);
  memory.enter(observe::MemoryPhase::kForward);
  memory.reset_peaks();
  const std::int64_t before = memory.total();
  const TimePoint begin = system_clock().now();
  {
    const params::Loss loss = model.forward(taken);
    memory.enter(observe::MemoryPhase::kBackward);
    loss.backward();
  }
  TriedPass tried;
  tried.time = system_clock().now() - begin;
  tried.point = {samples, memory.peak().total - before};
  for (const params::ParameterSlot& slot : space.slots()) slot.tensor.mutable_grad() = torch::Tensor();
  memory.enter(observe::MemoryPhase::kUpdate);
  return tried;
}

}  // namespace convoy::train

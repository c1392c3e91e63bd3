#include "convoy/observe/memory_meter.h"

namespace convoy::observe {

std::string_view to_string(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters: return "parameters";
    case MemoryCategory::kGradients: return "gradients";
    case MemoryCategory::kGradientPartials: return "gradient_partials";
    case MemoryCategory::kOptimizer: return "optimizer";
    case MemoryCategory::kActivations: return "activations";
    case MemoryCategory::kBatch: return "batch";
    case MemoryCategory::kCommunicationBuffers: return "communication_buffers";
    case MemoryCategory::kOther: return "other";
  }
  return "unknown";
}

std::string_view to_string(MemoryPhase phase) {
  switch (phase) {
    case MemoryPhase::kInitialisation: return "initialisation";
    case MemoryPhase::kForward: return "forward";
    case MemoryPhase::kBackward: return "backward";
    case MemoryPhase::kUpdate: return "update";
  }
  return "unknown";
}

void MemoryMeter::add(MemoryCategory category, std::int64_t bytes) {
  const MutexLock lock(mutex_);
  bytes_[static_cast<std::size_t>(category)] += bytes;
  total_ += bytes;
  note_peak();
}

void MemoryMeter::set(MemoryCategory category, std::int64_t bytes) {
  const MutexLock lock(mutex_);
  std::int64_t& now = bytes_[static_cast<std::size_t>(category)];
  total_ += bytes - now;
  now = bytes;
  note_peak();
}

void MemoryMeter::enter(MemoryPhase phase) {
  const MutexLock lock(mutex_);
  phase_ = phase;
}

MemoryBytes MemoryMeter::current() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

MemoryPeak MemoryMeter::peak() const {
  const MutexLock lock(mutex_);
  return peak_;
}

void MemoryMeter::note_peak() {
  if (total_ > peak_.total) peak_ = {total_, bytes_, phase_};
}

}  // namespace convoy::observe

#include "convoy/observe/memory_meter.h"

#include <utility>

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
  if (!counting_.load(std::memory_order_relaxed)) return;
  note(category, bytes);
  note_total(total_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void MemoryMeter::move(MemoryCategory from, MemoryCategory to, std::int64_t bytes) {
  if (!counting_.load(std::memory_order_relaxed)) return;
  bytes_[static_cast<std::size_t>(from)].fetch_sub(bytes, std::memory_order_relaxed);
  note(to, bytes);
}

void MemoryMeter::note(MemoryCategory category, std::int64_t bytes) {
  const auto index = static_cast<std::size_t>(category);
  const std::int64_t now = bytes_[index].fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t highest = highest_[index].load(std::memory_order_relaxed);
  while (now > highest && !highest_[index].compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
}

void MemoryMeter::note_total(std::int64_t total) {
  const MemoryPhase phase = phase_.load(std::memory_order_relaxed);
  const auto index = static_cast<std::size_t>(phase);
  if (total <= peak_totals_[index].load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  if (total <= peak_totals_[index].load(std::memory_order_relaxed)) return;
  peak_totals_[index].store(total, std::memory_order_relaxed);
  peaks_[index] = {total, current(), phase};
}

void MemoryMeter::enter(MemoryPhase phase) {
  phase_.store(phase, std::memory_order_relaxed);
  note_total(total());
}

MemoryBytes MemoryMeter::current() const {
  MemoryBytes now;
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = bytes_[i].load(std::memory_order_relaxed);
  return now;
}

MemoryBytes MemoryMeter::highest() const {
  MemoryBytes most;
  for (std::size_t i = 0; i < most.size(); ++i) most[i] = highest_[i].load(std::memory_order_relaxed);
  return most;
}

MemoryPeak MemoryMeter::peak() const {
  const MutexLock lock(mutex_);
  MemoryPeak worst;
  for (const MemoryPeak& peak : peaks_) {
    if (peak.total > worst.total) worst = peak;
  }
  return worst;
}

MemoryPeak MemoryMeter::peak(MemoryPhase phase) const {
  const MutexLock lock(mutex_);
  return peaks_[static_cast<std::size_t>(phase)];
}

void MemoryMeter::reset_peaks() {
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < kMemoryPhases; ++i) {
      peak_totals_[i].store(0, std::memory_order_relaxed);
      peaks_[i] = {0, {}, static_cast<MemoryPhase>(i)};
    }
    for (std::size_t i = 0; i < kMemoryCategories; ++i) highest_[i].store(bytes_[i].load());
  }
  note_total(total());
}

MemoryMeter& process_memory() {
  static MemoryMeter& meter = *new MemoryMeter;
  return meter;
}

namespace {

// One more than the number of the category of the innermost scope; 0 without a scope.
thread_local unsigned char scope_category = 0;

}  // namespace

MemoryScope::MemoryScope(MemoryCategory category) : before_(scope_category) {
  scope_category = static_cast<unsigned char>(static_cast<unsigned char>(category) + 1);
}

MemoryScope::~MemoryScope() { scope_category = before_; }

MemoryCategory MemoryScope::current() {
  if (scope_category != 0) return static_cast<MemoryCategory>(scope_category - 1);
  const MemoryPhase phase = process_memory().phase();
  const bool passes = phase == MemoryPhase::kForward || phase == MemoryPhase::kBackward;
  return passes ? MemoryCategory::kActivations : MemoryCategory::kOther;
}

CountedMemory::CountedMemory(CountedMemory&& other) noexcept
    : category_(other.category_), bytes_(std::exchange(other.bytes_, 0)) {}

CountedMemory& CountedMemory::operator=(CountedMemory&& other) noexcept {
  if (this == &other) return *this;
  resize(0);
  category_ = other.category_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void CountedMemory::resize(std::int64_t bytes) {
  if (bytes == bytes_) return;
  process_memory().add(category_, bytes - bytes_);
  bytes_ = bytes;
}

}  // namespace convoy::observe

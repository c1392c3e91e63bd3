#include "convoy/observe/step_timer.h"

#include "convoy/base/error.h"
#include "convoy/observe/quantile.h"

namespace convoy::observe {
namespace {

std::size_t index(Part part) { return static_cast<std::size_t>(part); }

}  // namespace

std::string_view to_string(Part part) {
  switch (part) {
    case Part::kInputPrepare: return "input_prepare";
    case Part::kInputWait: return "input_wait";
    case Part::kForward: return "forward";
    case Part::kBackward: return "backward";
    case Part::kComm: return "comm";
    case Part::kCommExposed: return "comm_exposed";
    case Part::kWaitSlowest: return "wait_slowest";
    case Part::kOptimizer: return "optimizer";
    case Part::kOther: return "other";
  }
  return "unknown";
}

bool is_exclusive(Part part) {
  return part != Part::kInputPrepare && part != Part::kComm && part != Part::kWaitSlowest;
}

StepTimer::Span::Span(StepTimer& timer, Part part) : timer_(timer), part_(part), start_(timer.clock_.now()) {
  if (!is_exclusive(part_)) return;
  outer_ = timer_.open_;
  timer_.open_ = this;
}

StepTimer::Span::~Span() {
  const Duration whole = timer_.clock_.now() - start_;
  timer_.add(part_, whole - inner_);
  if (!is_exclusive(part_)) return;
  timer_.open_ = outer_;
  if (outer_ != nullptr) outer_->inner_ += whole;
}

StepTimer::StepTimer(const Clock& clock) : clock_(clock), step_start_(clock.now()) {}

void StepTimer::add(Part part, Duration duration) {
  parts_ns_[index(part)].fetch_add(duration.count(), std::memory_order_relaxed);
}

void StepTimer::begin_step() {
  for (const Part part : kAllParts) {
    if (is_exclusive(part)) parts_ns_[index(part)].store(0, std::memory_order_relaxed);
  }
  step_start_ = clock_.now();
}

StepTimes StepTimer::end_step() {
  CONVOY_CHECK(open_ == nullptr, "a step ends while a part of it is still measured");
  const TimePoint now = clock_.now();
  StepTimes times;
  times.total = now - step_start_;
  Duration known{};
  for (const Part part : kAllParts) {
    const Duration spent(parts_ns_[index(part)].exchange(0, std::memory_order_relaxed));
    times.parts[index(part)] = spent;
    if (is_exclusive(part) && part != Part::kOther) known += spent;
  }
  times.parts[index(Part::kOther)] = times.total - known;
  step_start_ = now;
  return times;
}

void StepStatistics::add(const StepTimes& times) {
  if (seen_++ < warmup_) return;
  total_ms_.push_back(to_ms(times.total));
  for (const Part part : kAllParts) parts_ms_[index(part)].push_back(to_ms(times.part(part)));
}

StepSummary StepStatistics::summary() const {
  StepSummary summary;
  summary.steps = static_cast<std::int64_t>(total_ms_.size());
  if (total_ms_.empty()) return summary;
  summary.median_ms = median(total_ms_);
  summary.p95_ms = p95(total_ms_);
  for (const Part part : kAllParts) summary.parts_ms[index(part)] = median(parts_ms_[index(part)]);
  return summary;
}

}  // namespace convoy::observe

#include "convoy/train/trace/trace_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "convoy/base/log.h"
#include "convoy/observe/trace/diagnosis.h"
#include "convoy/observe/trace/trace_analysis.h"
#include "convoy/observe/trace/trace_file.h"
#include "convoy/observe/trace/trace_report.h"

namespace convoy::train {
namespace {

using observe::Span;
using observe::SpanKind;

// Room for so many spans is set aside for each step, and at most 11 MB in all.
constexpr std::int64_t kSpansOfStep = 1024;
constexpr std::int64_t kMostSpans = 1 << 17;
// Operators are counted in each step of so many, since that costs.
constexpr std::int64_t kCountEvery = 8;

std::int64_t ns(TimePoint time) { return time.time_since_epoch().count(); }

int host_of(const comm::Group& group) {
  const spec::HostOfRank hosts = group.hosts();
  return hosts.empty() ? 0 : hosts[static_cast<std::size_t>(group.rank())];
}

}  // namespace

TraceCollector::TraceCollector(const spec::Recipe& recipe, std::int64_t first_step, int replicas,
                               const comm::ClockOffset& clock, comm::Group& group, Files& files, std::string directory)
    : recipe_(recipe),
      group_(group),
      files_(files),
      directory_(std::move(directory)),
      begin_(first_step + recipe.measure.warmup_steps),
      end_(begin_ + recipe.measure.trace_steps),
      recorder_(static_cast<std::size_t>(std::min(kMostSpans, (recipe.measure.trace_steps + 1) * kSpansOfStep))),
      clocks_{clock} {
  about_.rank = group.rank();
  about_.host = host_of(group);
  about_.processors = static_cast<int>(std::thread::hardware_concurrency());
  about_.replicas = replicas;
  files_.remove(own_path());
  if (group.rank() == 0) files_.remove(directory_ + "/trace.json");
}

std::string TraceCollector::own_path() const { return fmt::format("{}/trace.rank-{}.json", directory_, group_.rank()); }

void TraceCollector::record(SpanKind kind, TimePoint begin, TimePoint end) {
  Span span;
  span.kind = kind;
  span.step = step_;
  span.begin_ns = ns(begin);
  span.end_ns = ns(end);
  recorder_.record(span);
}

void TraceCollector::begin_step(std::int64_t step, TimePoint begin, const records::StepBatch& input) {
  if (step < begin_ || step >= end_) return;
  step_ = step;
  step_begin_ = begin;
  record(SpanKind::kInputPrepare, input.prepared - input.prepare, input.prepared);
  record(SpanKind::kInputWait, begin, begin + input.waited);
  counting_ = (step - begin_) % kCountEvery == 0;
  if (counting_) counter_.start();
}

void TraceCollector::record_bucket(std::size_t number, const parallel::BucketTimes& times) {
  Span span;
  span.kind = SpanKind::kBucket;
  span.step = step_;
  span.number = static_cast<std::int64_t>(number);
  span.begin_ns = ns(times.ready);
  span.launched_ns = ns(times.launched);
  span.returned_ns = ns(times.returned);
  span.end_ns = ns(times.finished);
  span.bytes = times.bytes;
  recorder_.record(span);
}

void TraceCollector::after_gradient(const parallel::StepResult& result,
                                    const std::vector<parallel::BucketTimes>& buckets) {
  if (!tracing()) return;
  if (counting_) counted_ = counter_.stop();
  for (const parallel::PassTimes& pass : result.passes) {
    Span span;
    span.kind = pass.backward ? SpanKind::kBackward : SpanKind::kForward;
    span.step = step_;
    span.number = pass.replica;
    span.micro_batch = pass.micro_batch;
    span.begin_ns = ns(pass.begin);
    span.end_ns = ns(pass.end);
    recorder_.record(span);
  }
  for (std::size_t i = 0; i < buckets.size(); ++i) record_bucket(i, buckets[i]);
  Span agreement;
  agreement.kind = SpanKind::kAgreement;
  agreement.step = step_;
  agreement.begin_ns = agreement.launched_ns = agreement.returned_ns = ns(result.wait_begin);
  agreement.end_ns = ns(result.wait_end);
  agreement.bytes = 0;
  recorder_.record(agreement);
  record(SpanKind::kCommWait, result.wait_begin, result.wait_end);
  gradient_end_ = result.wait_begin + result.exposed;
  record(SpanKind::kGradientNorm, result.wait_end, gradient_end_);
}

void TraceCollector::after_update() {
  if (tracing()) record(SpanKind::kOptimizer, gradient_end_, system_clock().now());
}

void TraceCollector::end_step() {
  if (!tracing()) return;
  // Last, so that a step that found no room for all of its spans has none for this.
  Span span;
  span.kind = SpanKind::kStep;
  span.step = step_;
  span.begin_ns = ns(step_begin_);
  span.end_ns = ns(system_clock().now());
  if (counting_) {
    span.operators = counted_.operators;
    span.operator_ns = counted_.time_ns;
  }
  recorder_.record(span);
  step_ = -1;
}

void TraceCollector::outside(SpanKind kind, TimePoint begin) { record(kind, begin, system_clock().now()); }

observe::RankTrace TraceCollector::own_trace() const {
  observe::RankTrace trace = about_;
  // Clocks of two hosts drift apart: the middle of both ends is nowhere wrong by more than half of the drift.
  const comm::ClockOffset& first = clocks_.front();
  const comm::ClockOffset& last = clocks_.back();
  trace.clock_offset_ns = (first.offset + (last.offset - first.offset) / 2).count();
  trace.clock_uncertainty_ns = (std::max(first.uncertainty, last.uncertainty) +
                                std::max(last.offset - first.offset, first.offset - last.offset) / 2)
                                   .count();
  trace.dropped = recorder_.dropped();
  trace.spans.assign(recorder_.spans().begin(), recorder_.spans().end());
  observe::shift_to_common_clock(trace);
  return trace;
}

std::optional<observe::Trace> TraceCollector::gather() {
  clocks_.push_back(comm::own_clock_offset(group_));
  const std::vector<std::int64_t> own = observe::to_words(own_trace());
  const auto ranks = static_cast<std::size_t>(group_.size());
  const auto length = static_cast<std::int64_t>(own.size());
  std::vector<std::int64_t> lengths(ranks);
  comm::all_gather_async(group_, comm::Buffer(std::span<const std::int64_t>(&length, 1)),
                         comm::Buffer(std::span<std::int64_t>(lengths)), std::vector<std::int64_t>(ranks, 1),
                         DType::kInt64)
      .wait();
  std::int64_t all_words = 0;
  for (const std::int64_t one : lengths) all_words += one;
  std::vector<std::int64_t> all(static_cast<std::size_t>(all_words));
  comm::all_gather_async(group_, comm::Buffer(std::span<const std::int64_t>(own)),
                         comm::Buffer(std::span<std::int64_t>(all)), lengths, DType::kInt64)
      .wait();
  if (group_.rank() != 0) return std::nullopt;
  observe::Trace trace;
  trace.task = recipe_.task.name;
  trace.bucket_bytes = recipe_.parallel.known_bucket_bytes();
  std::span<const std::int64_t> rest(all);
  for (const std::int64_t one : lengths) {
    trace.ranks.push_back(observe::from_words(rest.first(static_cast<std::size_t>(one))));
    rest = rest.subspan(static_cast<std::size_t>(one));
  }
  observe::start_at_zero(trace);
  return trace;
}

void TraceCollector::write_own() noexcept {
  try {
    observe::Trace trace;
    trace.task = recipe_.task.name;
    trace.bucket_bytes = recipe_.parallel.known_bucket_bytes();
    trace.ranks.push_back(own_trace());
    observe::write_trace(files_, own_path(), trace);
  } catch (const std::exception& error) {
    log_warning("{} is not written: {}", own_path(), error.what());
  }
}

nlohmann::ordered_json judge_trace(const observe::Trace& trace, std::vector<std::string>& notes) {
  const observe::TraceAnalysis analysis = observe::analyse(trace);
  const std::vector<observe::Finding> findings = observe::diagnose(trace, analysis);
  for (const observe::Finding& finding : findings) {
    notes.push_back(fmt::format("{}: {}; {}", finding.name, finding.words, finding.advice));
  }
  return observe::summary_json(trace, analysis, findings);
}

}  // namespace convoy::train

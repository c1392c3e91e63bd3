#include "convoy/train/trace/operator_counter.h"

#include <ATen/record_function.h>
#include <time.h>

#include <atomic>
#include <memory>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

// Callbacks are plain functions, so what they count into is the process's.
std::atomic<bool> active{false};
std::atomic<std::int64_t> operators{0};
std::atomic<std::int64_t> time_ns{0};
thread_local int depth = 0;

struct Begin final : at::ObserverContext {
  std::int64_t at_ns = 0;
};

std::int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction&) {
  if (depth++ > 0) return nullptr;
  auto begin = std::make_unique<Begin>();
  begin->at_ns = thread_time_ns();
  return begin;
}

void end_operator(const at::RecordFunction&, at::ObserverContext* context) {
  --depth;
  if (context == nullptr) return;
  const std::int64_t taken_ns = thread_time_ns() - static_cast<Begin*>(context)->at_ns;
  operators.fetch_add(1, std::memory_order_relaxed);
  time_ns.fetch_add(taken_ns, std::memory_order_relaxed);
}

}  // namespace

OperatorCounter::~OperatorCounter() { stop(); }

void OperatorCounter::start() {
  CONVOY_CHECK(!active.exchange(true), "operators are counted already");
  operators = 0;
  time_ns = 0;
  depth = 0;
  callback_ = at::addGlobalCallback(
      at::RecordFunctionCallback(&begin_operator, &end_operator).scopes({at::RecordScope::FUNCTION}));
  counting_ = true;
}

OperatorCount OperatorCounter::stop() {
  if (!counting_) return {};
  at::removeCallback(callback_);
  counting_ = false;
  active = false;
  return {operators, time_ns};
}

}  // namespace convoy::train

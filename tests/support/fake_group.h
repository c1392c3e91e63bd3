// A group whose ranks are threads of one process and whose operations meet in one place, without transport or engine.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convoy/base/mutex.h"
#include "convoy/comm/group.h"
#include "tests/support/ranks.h"

namespace convoy::testing {

/// Where the ranks of a FakeGroup meet. It knows barriers and the all-reduce of float64 numbers.
/// Threads:    any
class FakeWorld {
 public:
  /// Makes room for `ranks` ranks, none of which waits longer than `timeout`.
  explicit FakeWorld(int ranks, Duration timeout = std::chrono::seconds(10)) : timeout_(timeout), waiting_(ranks) {}
  /// Returns the number of ranks.
  int size() const { return static_cast<int>(waiting_.size()); }
  /// Returns the longest wait.
  Duration timeout() const { return timeout_; }

  /// Waits until all ranks are here; the last one does the operation for all.
  /// Errors:     kTimeout naming who is missing; kDesync when ranks ask for different operations
  void meet(int rank, const comm::Collective& collective) {
    MutexLock lock(mutex_);
    waiting_[static_cast<std::size_t>(rank)] = &collective;
    const std::uint64_t round = round_;
    if (++arrived_ == waiting_.size()) {
      operate();
      std::fill(waiting_.begin(), waiting_.end(), nullptr);
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    const Deadline deadline(system_clock(), timeout_);
    while (round_ == round && !deadline.expired()) changed_.wait_for(mutex_, deadline.remaining());
    if (round_ == round) throw Error(ErrorCode::kTimeout, "a rank of the fake group did not come");
  }

 private:
  void operate() CONVOY_REQUIRES(mutex_) {
    const comm::Collective& first = *waiting_.front();
    double combined = 0;
    for (std::size_t rank = 0; rank < waiting_.size(); ++rank) {
      const comm::Collective& own = *waiting_[rank];
      CONVOY_CHECK(own.output.elements() == first.output.elements() && own.reduce == first.reduce,
                   "ranks of a fake group ask for different operations");
      if (own.output.elements() == 0) continue;
      CONVOY_CHECK(own.dtype == DType::kFloat64 && own.output.elements() == 1,
                   "a fake group reduces one float64 number only");
      const double value = *reinterpret_cast<const double*>(own.inputs.front().extents().front().data);
      combined = rank == 0 ? value : combine(combined, value, own.reduce);
    }
    if (first.reduce == ReduceOp::kMean) combined /= static_cast<double>(waiting_.size());
    for (const comm::Collective* own : waiting_) {
      if (own->output.elements() == 0) continue;
      *reinterpret_cast<double*>(own->output.extents().front().data) = combined;
    }
  }

  static double combine(double a, double b, ReduceOp reduce) {
    if (reduce == ReduceOp::kMin) return std::min(a, b);
    if (reduce == ReduceOp::kMax) return std::max(a, b);
    return a + b;
  }

  const Duration timeout_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<const comm::Collective*> waiting_ CONVOY_GUARDED_BY(mutex_);
  std::size_t arrived_ CONVOY_GUARDED_BY(mutex_) = 0;
  std::uint64_t round_ CONVOY_GUARDED_BY(mutex_) = 0;
};

/// One rank of a FakeWorld.
/// Ownership:  borrows the world
class FakeGroup final : public comm::Group {
 public:
  /// Makes rank `rank` of the world.
  FakeGroup(FakeWorld& world, int rank) : world_(world), rank_(rank) {}
  const std::string& name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return world_.size(); }
  std::uint64_t generation() const override { return 1; }
  Duration timeout() const override { return world_.timeout(); }
  [[nodiscard]] comm::Work submit(comm::Collective collective) override {
    auto state = std::make_shared<comm::WorkState>("fake");
    std::exception_ptr error;
    try {
      world_.meet(rank_, collective);
    } catch (...) {
      error = std::current_exception();
    }
    state->complete(error);
    return comm::Work(std::move(state));
  }
  void abort(const Error&) override {}
  std::uint64_t sent_bytes() const override { return 0; }
  std::shared_ptr<const spec::Schedule> schedule(const std::string&,
                                                 const std::function<spec::Schedule()>& build) override {
    return std::make_shared<const spec::Schedule>(build());
  }

 private:
  FakeWorld& world_;
  const int rank_;
  const std::string name_ = "fake";
};

/// Runs the body once for each rank, each in its thread; returns what each threw (null: nothing).
inline std::vector<std::exception_ptr> collect_fake_ranks(int ranks, const std::function<void(comm::Group&)>& body) {
  FakeWorld world(ranks);
  return collect_ranks(ranks, [&](int rank) {
    FakeGroup group(world, rank);
    body(group);
  });
}

/// Runs the body once for each rank, each in its thread; throws the error of the lowest rank that has one.
inline void run_fake_ranks(int ranks, const std::function<void(comm::Group&)>& body) {
  for (const std::exception_ptr& thrown : collect_fake_ranks(ranks, body)) {
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }
}

}  // namespace convoy::testing

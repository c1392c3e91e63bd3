// The group that runs schedules: a queue of operations, and one thread that makes progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "convoy/comm/engine/executor.h"
#include "convoy/comm/engine/selection.h"

namespace convoy::comm {

/// A Group over any transport; what make_group returns.
/// Threads:    as Group says
class ScheduledGroup final : public Group {
 public:
  /// Takes the transport and starts the progress thread.
  ScheduledGroup(std::unique_ptr<Transport> transport, const GroupOptions& options);
  /// Aborts what is still running, and joins the thread.
  ~ScheduledGroup() override;

  const std::string& name() const override { return options_.name; }
  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::uint64_t generation() const override { return options_.generation; }
  Duration timeout() const override { return options_.timeout; }
  Work submit(Collective collective) override;
  void run(Collective collective) override;
  void abort(const Error& error) override;
  std::size_t small_bytes() const override { return reducer_.capacity(); }
  bool try_all_reduce(const std::byte* input, std::byte* output, std::int64_t elements, DType dtype,
                      ReduceOp reduce) override;
  spec::HostOfRank hosts() const override { return selection_.hosts(); }
  Selection* selection() override { return &selection_; }
  std::uint64_t sent_bytes() const override { return sent_bytes_.load(std::memory_order_relaxed); }
  std::shared_ptr<const spec::Schedule> schedule(const std::string& key,
                                                 const std::function<spec::Schedule()>& build) override;

 private:
  struct Task : ExecutorTask {
    std::shared_ptr<WorkState> state;
    // Whether it is a small all-reduce, and whether this rank's input of it is published already.
    bool small = false;
    bool shown = false;
  };
  // What submit has to know of a schedule, worked out once.
  struct ScheduleFacts {
    std::shared_ptr<const spec::Schedule> schedule;
    std::uint64_t hash = 0;
    bool reduces = false;
    bool plain_direct = false;
    bool stores_partials = false;
    std::shared_ptr<const spec::DirectStores> stores;
  };

  const ScheduleFacts& facts_of(const std::shared_ptr<const spec::Schedule>& schedule);
  void check(const Collective& collective, const ScheduleFacts& facts) const;
  void check_compression(const Collective& collective, const spec::Schedule& schedule) const;
  void throw_if_aborted();
  Task make_task(Collective collective, std::uint64_t sequence);
  void work();
  void run_here(Task task);
  void execute(Task& task);
  void fail(Task& task, const Error& error);
  void finish(Task& task, std::exception_ptr error);
  void beat();

  void record_failure(const Error& error);

  // Constant.
  const GroupOptions options_;
  // Self-synchronised.
  observe::FlightRecorder recorder_;
  std::atomic<bool> recorded_{false};
  const ExecutorOptions executor_options_;
  // Self-synchronised as Transport says: the progress thread is its one caller.
  const std::unique_ptr<Transport> transport_;
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::atomic<bool> failed_{false};
  // The submitting thread's alone.
  Selection selection_;
  std::vector<std::pair<std::string, std::shared_ptr<const spec::Schedule>>> schedules_;
  std::vector<ScheduleFacts> facts_;
  std::uint64_t next_sequence_ = 1;
  // Of whoever executes: the progress thread, or the submitting thread while nothing is in flight.
  ExecutorPools pools_;
  SmallReducer reducer_;
  // Operations that are queued or running.
  std::atomic<int> in_flight_{0};

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Task> queue_ CONVOY_GUARDED_BY(mutex_);
  bool running_ CONVOY_GUARDED_BY(mutex_) = false;
  bool stopping_ CONVOY_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace convoy::comm

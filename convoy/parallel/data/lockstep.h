// Lock-step: a rank's replicas go through a pass together, for models with layers that compute over all replicas.
//
// Each replica has a thread, but only one of them runs at a time: it goes on until it needs the others' numbers, then the
// rank's next replica runs up to there. The last one to come meets the other ranks; then the first one goes on. A rank
// none of whose replicas has samples takes part in these meetings too.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "convoy/base/mutex.h"
#include "convoy/comm/group.h"

namespace convoy::parallel {

/// What happens when replicas take turns, and at their meetings.
struct LockstepHooks {
  /// A replica stops to run; called on its thread.
  std::function<void(int replica)> leave;
  /// A replica goes on; called on its thread.
  std::function<void(int replica)> enter;
  /// Returns how much is ready to be sent here.
  std::function<std::int64_t()> ready;
  /// Sends everything up to what is ready on all ranks: between meetings ranks may not submit anything else, since they
  /// would do so in different orders.
  std::function<void(std::int64_t count)> send;
};

/// Runs passes of a rank's replicas in lock-step.
/// Collective: all ranks of the group, pass by pass
/// Threads:    one caller at a time
class Lockstep {
 public:
  /// Ownership:  borrows the group
  Lockstep(comm::Group& group, int replicas, LockstepHooks hooks);

  /// Runs `pass(replica)` for each of the given replicas of this rank, which have samples; each finds its team in
  /// params::ReplicaTeam::current(). Ranks without any call it with none.
  /// Errors:     what a pass threw first; kDesync when replicas do not meet alike
  void run(std::span<const int> active, const std::function<void(int replica)>& pass);

 private:
  class Member;
  // Where a replica of this rank is.
  enum class State { kReady, kWaiting, kEnded };

  void run_member(std::size_t place, const std::function<void(int replica)>& pass);
  std::vector<double> gather(std::size_t place, std::span<const double> own);
  void pass_on(std::size_t place) CONVOY_REQUIRES(mutex_);
  void wait_for_turn(std::size_t place) CONVOY_REQUIRES(mutex_);
  // Meets the other ranks: with `numbers` of each waiting replica, or at the end of the pass with none. Returns how many
  // numbers the replicas of all ranks gave; 0 when all have ended.
  std::int64_t meet(std::int64_t numbers);
  void exchange(std::int64_t numbers);

  comm::Group& group_;
  const int replicas_;
  const LockstepHooks hooks_;
  std::vector<int> active_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<State> states_ CONVOY_GUARDED_BY(mutex_);
  std::vector<std::vector<double>> given_ CONVOY_GUARDED_BY(mutex_);
  // Whose turn it is, by place in active_.
  std::size_t turn_ CONVOY_GUARDED_BY(mutex_) = 0;
  // The newest meeting's result.
  std::vector<double> gathered_ CONVOY_GUARDED_BY(mutex_);
  std::exception_ptr failure_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::parallel

#include "convoy/parallel/data/lockstep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/params/replica_team.h"

namespace convoy::parallel {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
// A replica whose turn has not come looks so often whether it has; it is told when it has.
constexpr Duration kLook = std::chrono::seconds(1);

}  // namespace

// One replica's view.
class Lockstep::Member final : public params::ReplicaTeam {
 public:
  Member(Lockstep& lockstep, std::size_t place) : lockstep_(lockstep), place_(place) {}
  int replica() const override { return lockstep_.active_[place_]; }
  int replicas() const override { return lockstep_.replicas_; }
  std::vector<double> gather(std::span<const double> own) override { return lockstep_.gather(place_, own); }

 private:
  Lockstep& lockstep_;
  const std::size_t place_;
};

Lockstep::Lockstep(comm::Group& group, int replicas, LockstepHooks hooks)
    : group_(group), replicas_(replicas), hooks_(std::move(hooks)) {}

void Lockstep::run(std::span<const int> active, const std::function<void(int replica)>& pass) {
  active_.assign(active.begin(), active.end());
  {
    const MutexLock lock(mutex_);
    states_.assign(active_.size(), State::kReady);
    given_.assign(active_.size(), {});
    turn_ = 0;
    failure_ = nullptr;
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t place = 0; place < active_.size(); ++place) {
      threads.emplace_back([this, place, &pass] { run_member(place, pass); });
    }
  }
  std::exception_ptr failure;
  {
    const MutexLock lock(mutex_);
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
  // Replicas elsewhere may still meet: those with nothing to do here take part until all have ended.
  while (const std::int64_t numbers = meet(0)) exchange(numbers);
}

void Lockstep::run_member(std::size_t place, const std::function<void(int replica)>& pass) {
  {
    MutexLock lock(mutex_);
    while (turn_ != place && failure_ == nullptr) changed_.wait_for(mutex_, kLook);
    if (failure_ != nullptr) return;
  }
  Member member(*this, place);
  const params::TeamScope team(member);
  try {
    hooks_.enter(active_[place]);
    pass(active_[place]);
    hooks_.leave(active_[place]);
    MutexLock lock(mutex_);
    if (std::find(states_.begin(), states_.end(), State::kWaiting) != states_.end()) {
      throw Error(ErrorCode::kDesync, fmt::format("replica {} ended its pass while others of its rank wait for its numbers "
                                                  "in a layer that computes over all replicas",
                                                  active_[place]));
    }
    states_[place] = State::kEnded;
    pass_on(place);
  } catch (...) {
    MutexLock lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
    changed_.notify_all();
  }
}

// The next replica that can run; after the last one's meeting all are ready, and the first goes on.
void Lockstep::pass_on(std::size_t place) {
  for (std::size_t step = 1; step <= states_.size(); ++step) {
    const std::size_t next = (place + step) % states_.size();
    if (states_[next] != State::kReady) continue;
    turn_ = next;
    break;
  }
  changed_.notify_all();
}

void Lockstep::wait_for_turn(std::size_t place) {
  while ((turn_ != place || states_[place] != State::kReady) && failure_ == nullptr) changed_.wait_for(mutex_, kLook);
  if (failure_ != nullptr) throw Error(ErrorCode::kAborted, "another replica of this rank failed");
}

std::vector<double> Lockstep::gather(std::size_t place, std::span<const double> own) {
  hooks_.leave(active_[place]);
  bool last = false;
  {
    MutexLock lock(mutex_);
    given_[place].assign(own.begin(), own.end());
    states_[place] = State::kWaiting;
    if (std::find(states_.begin(), states_.end(), State::kEnded) != states_.end()) {
      throw Error(ErrorCode::kDesync, fmt::format("replica {} waits in a layer that computes over all replicas, and "
                                                  "another of its rank has ended its pass",
                                                  active_[place]));
    }
    for (std::size_t other = 0; other < given_.size(); ++other) {
      if (states_[other] != State::kWaiting || given_[other].size() == own.size()) continue;
      throw Error(ErrorCode::kDesync, fmt::format("replica {} gives {} numbers to a layer that computes over all replicas, "
                                                  "replica {} gives {}",
                                                  active_[place], own.size(), active_[other], given_[other].size()));
    }
    last = std::find(states_.begin(), states_.end(), State::kReady) == states_.end();
  }
  if (last) {
    const auto numbers = static_cast<std::int64_t>(own.size());
    if (meet(numbers) != numbers) throw Error(ErrorCode::kInternal, "a meeting ended with another number of numbers");
    exchange(numbers);
    MutexLock lock(mutex_);
    states_.assign(states_.size(), State::kReady);
    turn_ = 0;
    changed_.notify_all();
  } else {
    MutexLock lock(mutex_);
    pass_on(place);
  }
  std::vector<double> all;
  {
    MutexLock lock(mutex_);
    wait_for_turn(place);
    all = gathered_;
  }
  hooks_.enter(active_[place]);
  return all;
}

std::int64_t Lockstep::meet(std::int64_t numbers) {
  // Ranks that have nothing to say leave the choice to the others; of those that do, all must say the same.
  const bool takes_part = numbers > 0;
  const auto said = static_cast<double>(numbers);
  std::array<double, 3> facts = {takes_part ? said : kNothing, takes_part ? -said : kNothing,
                                 -static_cast<double>(hooks_.ready())};
  comm::all_reduce(group_, facts.data(), facts.data(), static_cast<std::int64_t>(facts.size()), DType::kFloat64,
                   ReduceOp::kMax);
  hooks_.send(static_cast<std::int64_t>(-facts[2]));
  if (facts[0] == kNothing) return 0;
  if (facts[0] != -facts[1]) {
    throw Error(ErrorCode::kDesync, fmt::format("replicas of different ranks give {} and {} numbers to a layer that "
                                                "computes over all replicas",
                                                -facts[1], facts[0]));
  }
  return static_cast<std::int64_t>(facts[0]);
}

void Lockstep::exchange(std::int64_t numbers) {
  // Each replica's part is filled by one rank, so the sum is exact whatever its order.
  std::vector<double> all(static_cast<std::size_t>(replicas_ * numbers), 0.0);
  {
    const MutexLock lock(mutex_);
    for (std::size_t place = 0; place < active_.size(); ++place) {
      if (states_[place] != State::kWaiting) continue;
      std::copy(given_[place].begin(), given_[place].end(),
                all.begin() + static_cast<std::ptrdiff_t>(active_[place] * numbers));
    }
  }
  comm::all_reduce(group_, all.data(), all.data(), static_cast<std::int64_t>(all.size()), DType::kFloat64);
  // A sum of several zeros is never negative; one of a single rank is made so too.
  for (double& number : all) number += 0.0;
  const MutexLock lock(mutex_);
  gathered_ = std::move(all);
}

}  // namespace convoy::parallel

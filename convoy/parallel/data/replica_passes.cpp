#include "convoy/parallel/data/replica_passes.h"

#include <ATen/CPUGeneratorImpl.h>

#include "convoy/observe/memory_meter.h"

namespace convoy::parallel {
namespace {

// Only the last micro-batch that has samples hands its gradients over; before it they add up in autograd.
std::size_t last_with_samples(const std::vector<params::Batch>& micro_batches) {
  std::size_t last = micro_batches.size();
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    if (micro_batches[i].input.defined()) last = i;
  }
  return last;
}

}  // namespace

Duration PassFacts::total(bool backward) const {
  Duration sum{};
  for (const PassTimes& part : times) {
    if (part.backward == backward) sum += part.end - part.begin;
  }
  return sum;
}

ReplicaPasses::ReplicaPasses(params::Model& model, comm::Group& group, const PassOptions& options,
                             ReplicaBuffers& buffers, params::GradientHooks& hooks, GradientExchange& exchange)
    : model_(model),
      options_(options),
      buffers_(buffers),
      hooks_(hooks),
      exchange_(exchange),
      suspended_(static_cast<std::size_t>(options.range.size())) {
  if (!model.across_replicas()) return;
  lockstep_.emplace(group, options.replicas,
                    LockstepHooks{[this](int replica) { leave(replica); }, [this](int replica) { enter(replica); },
                                  [this] { return exchange_.ready_buckets(); },
                                  [this](std::int64_t count) { exchange_.launch_up_to(count); }});
}

void ReplicaPasses::run(std::int64_t step, std::span<const std::vector<params::Batch>> batches, PassFacts& facts) {
  facts_ = &facts;
  lockstep_ ? run_in_lockstep(step, batches) : run_in_turn(step, batches);
}

void ReplicaPasses::run_in_turn(std::int64_t step, std::span<const std::vector<params::Batch>> batches) {
  for (int replica = options_.range.begin; replica < options_.range.end; ++replica) {
    const std::vector<params::Batch>& micro_batches = batches[place_of(replica)];
    const std::size_t last = last_with_samples(micro_batches);
    buffers_.load(replica);
    exchange_.enter_replica(place_of(replica));
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
      if (!micro_batches[i].input.defined()) continue;
      pass({options_.seed, step, replica, static_cast<int>(i)}, micro_batches[i], i == last);
    }
    hooks_.end_replica();
    exchange_.end_replica();
    buffers_.store(replica);
  }
}

void ReplicaPasses::run_in_lockstep(std::int64_t step, std::span<const std::vector<params::Batch>> batches) {
  exchange_.hold_launches();
  suspended_.assign(suspended_.size(), Suspended{});
  std::size_t micro_batches = 0;
  for (const std::vector<params::Batch>& of_replica : batches) micro_batches = std::max(micro_batches, of_replica.size());
  for (std::size_t i = 0; i < micro_batches; ++i) {
    std::vector<int> active;
    for (int replica = options_.range.begin; replica < options_.range.end; ++replica) {
      if (batches[place_of(replica)][i].input.defined()) active.push_back(replica);
    }
    lockstep_->run(active, [&](int replica) {
      const std::vector<params::Batch>& own = batches[place_of(replica)];
      pass({options_.seed, step, replica, static_cast<int>(i)}, own[i], i == last_with_samples(own));
    });
  }
  for (int replica = options_.range.begin; replica < options_.range.end; ++replica) {
    Suspended& state = suspended_[place_of(replica)];
    exchange_.enter_replica(place_of(replica));
    hooks_.swap_gradients(state.gradients);
    if (state.delivering) hooks_.deliver_to(exchange_);
    hooks_.end_replica();
    exchange_.end_replica();
  }
}

void ReplicaPasses::pass(const params::RandomPlace& place, const params::Batch& batch, bool last) {
  const params::RandomScope random(place);
  const auto index = static_cast<std::size_t>(place.replica);
  begin_part(place.replica, place.micro_batch, false);
  const params::Loss loss = model_.forward(batch);
  end_part(place.replica);
  begin_part(place.replica, place.micro_batch, true);
  facts_->losses[index] += loss.value();
  facts_->counts[index] += static_cast<double>(loss.count);
  loss.backward([this, last] {
    if (last) hooks_.deliver_to(exchange_);
  });
  end_part(place.replica);
}

void ReplicaPasses::begin_part(int replica, int micro_batch, bool backward) {
  Suspended& state = suspended_[place_of(replica)];
  state.backward = backward;
  state.micro_batch = micro_batch;
  state.since = system_clock().now();
  observe::process_memory().enter(backward ? observe::MemoryPhase::kBackward : observe::MemoryPhase::kForward);
}

void ReplicaPasses::end_part(int replica) {
  Suspended& state = suspended_[place_of(replica)];
  if (state.since == TimePoint{}) return;
  facts_->times.push_back({state.backward, replica, state.micro_batch, state.since, system_clock().now()});
  state.since = {};
}

void ReplicaPasses::leave(int replica) {
  Suspended& state = suspended_[place_of(replica)];
  const bool inside = state.since != TimePoint{};
  end_part(replica);
  buffers_.store(replica);
  hooks_.swap_gradients(state.gradients);
  state.delivering = hooks_.stop_delivering();
  // Between passes the next one starts the generator anew.
  state.generator = inside ? at::detail::getDefaultCPUGenerator().get_state() : torch::Tensor();
}

void ReplicaPasses::enter(int replica) {
  Suspended& state = suspended_[place_of(replica)];
  buffers_.load(replica);
  exchange_.enter_replica(place_of(replica));
  hooks_.swap_gradients(state.gradients);
  if (state.delivering) hooks_.deliver_to(exchange_);
  if (!state.generator.defined()) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  generator.set_state(state.generator);
  begin_part(replica, state.micro_batch, state.backward);
}

}  // namespace convoy::parallel

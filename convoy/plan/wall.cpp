#include "convoy/plan/wall.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/base/clock.h"
#include "convoy/base/text.h"

namespace convoy::plan {
namespace {

std::string size(double bytes) { return format_bytes(static_cast<std::uint64_t>(std::max(bytes, 0.0))); }

std::string percent(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

std::string time(double seconds) {
  return format_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

class Finder {
 public:
  explicit Finder(const WallFacts& facts)
      : facts_(facts),
        room_(facts.memory_limit_bytes - facts.taken_bytes),
        state_(facts.parameter_bytes + facts.gradient_bytes + facts.optimizer_bytes),
        pass_(facts.pass_base_bytes + facts.bytes_per_sample * static_cast<double>(facts.local_batch)) {}

  std::vector<WallFinding> find() const {
    std::vector<WallFinding> walls;
    if (facts_.largest_layer_bytes > room_) walls.push_back(layer());
    if (state_ > room_) {
      walls.push_back(
          state(fmt::format("parameters, gradients and optimizer state take {} and {} are free: they do not fit",
                            size(state_), size(room_))));
    } else if (state_ + pass_ > room_) {
      walls.push_back(activations());
    } else if (state_ > kStateShare * room_) {
      walls.push_back(
          state(fmt::format("copies of state dominate: parameters, gradients and optimizer state take {} of "
                            "the {} that are free",
                            percent(state_ / room_), size(room_))));
    }
    if (facts_.step_ms > 0 && facts_.input_wait_ms >= kInputShare * facts_.step_ms) walls.push_back(input());
    walls.push_back(compute());
    return walls;
  }

 private:
  WallFinding layer() const {
    return {Wall::kLayer,
            fmt::format(
                "one layer is too large: '{}' alone takes {} with its gradients and optimizer state, and {} are free",
                facts_.largest_layer, size(facts_.largest_layer_bytes), size(room_)),
            {{"tensor", "divides the layer itself over ranks: the only one that helps a single layer"}}};
  }

  WallFinding state(std::string words) const {
    return {Wall::kState,
            std::move(words),
            {{"divided_update", "ranks of one host have parameters, sums and optimizer state once, together"},
             {"sharded", fmt::format("each of N ranks keeps 1/N of the {}", size(state_))},
             {"pipeline", "each rank keeps the layers of its stage alone"},
             {"tensor", "each rank keeps a part of every layer"}}};
  }

  WallFinding activations() const {
    const double left = room_ - state_ - facts_.pass_base_bytes;
    const auto fits = facts_.bytes_per_sample > 0 && left > 0
                          ? static_cast<std::int64_t>(left / facts_.bytes_per_sample)
                          : std::int64_t{0};
    std::vector<WallAnswer> answers;
    if (fits >= 1) {
      answers.push_back({"smaller_batch", fmt::format("more micro-batches (train.accumulation) or replicas: at most {} "
                                                      "samples at once fit",
                                                      fits)});
      answers.push_back({"data", "more ranks with a smaller local batch each"});
    }
    answers.push_back({"pipeline", "each rank keeps the activations of its stage alone"});
    answers.push_back({"tensor", "each rank keeps a part of every layer's activations"});
    return {Wall::kActivations,
            fmt::format("a step does not fit: {} samples at once take {} beside {} of state, and {} are free",
                        facts_.local_batch, size(pass_), size(state_), size(room_)),
            std::move(answers)};
  }

  WallFinding input() const {
    return {Wall::kInput,
            fmt::format("steps wait for input: {:.2f} of {:.2f} ms ({})", facts_.input_wait_ms, facts_.step_ms,
                        percent(facts_.input_wait_ms / facts_.step_ms)),
            {{"more_prefetch",
              "more steps prepared ahead (data.prefetch) where preparing is uneven, cheaper preparation "
              "or faster storage where it is slow throughout"},
             {"data", "each rank reads and prepares its share alone"}}};
  }

  WallFinding compute() const {
    const double update = facts_.step_ms > 0 ? facts_.optimizer_ms / facts_.step_ms : 0.0;
    std::vector<WallAnswer> answers{{"data", "N ranks share each global batch: the strategy to try first"}};
    if (update >= kUpdateShare) {
      answers.push_back(
          {"divided_update",
           fmt::format("the update takes {} of the step, and every rank would repeat it", percent(update))});
    }
    if (facts_.local_batch <= 1) {
      answers.push_back({"tensor", "one sample at a time cannot be divided among replicas; layers can"});
    }
    return {Wall::kTime,
            fmt::format("computing takes the time: {:.2f} ms a step{}", facts_.step_ms,
                        facts_.total_s > 0 ? fmt::format(", about {} for the whole run", time(facts_.total_s)) : ""),
            std::move(answers)};
  }

  const WallFacts& facts_;
  const double room_;
  const double state_;
  const double pass_;
};

}  // namespace

std::string_view to_string(Wall wall) {
  switch (wall) {
    case Wall::kLayer: return "one_layer_too_large";
    case Wall::kState: return "state_copies_dominate";
    case Wall::kActivations: return "does_not_fit";
    case Wall::kInput: return "waits_for_input";
    case Wall::kTime: return "too_slow";
  }
  return "unknown";
}

std::vector<WallFinding> find_walls(const WallFacts& facts) { return Finder(facts).find(); }

}  // namespace convoy::plan

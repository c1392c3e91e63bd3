// The profile report: what one process measured, as JSON that people and the planner read.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/law/memory.h"
#include "convoy/observe/memory_meter.h"
#include "convoy/observe/memory_report.h"
#include "convoy/observe/step_timer.h"
#include "convoy/plan/wall.h"
#include "convoy/train/profile/batch_fit.h"
#include "convoy/train/profile/ceilings.h"
#include "convoy/train/profile/layer_table.h"

namespace convoy::train {

/// The version of profile.json: it rises when a field changes its meaning or goes away.
inline constexpr int kProfileFormat = 1;

/// How large a local batch may be.
struct BatchFacts {
  /// The memory that the process may take.
  MemoryLimit limit;
  /// What it takes beside what the meter counts: programs, datasets, stacks.
  std::int64_t taken_bytes = 0;
  /// What is there whatever the batch: parameters, sums, optimizer state, partial sums of other replicas, loose tensors.
  std::int64_t fixed_bytes = 0;
  /// What prepared batches take for each sample of the local batch.
  double input_bytes_per_sample = 0.0;
  /// What one pass takes.
  BatchFit fit;
  /// The two passes that say so.
  PassPoint smaller, larger;
  /// The largest that fits; 0 when not even one sample does.
  std::int64_t largest = 0;
  /// The pass of that size, where it was tried.
  std::optional<PassPoint> tried;
  /// Why it was not tried.
  std::string untried;

  /// Returns what a step takes at its peak with a local batch of this size.
  double peak_bytes(std::int64_t samples) const {
    return static_cast<double>(fixed_bytes) + fit.pass_bytes(samples) +
           input_bytes_per_sample * static_cast<double>(samples);
  }
};

/// What the whole run would take, in seconds.
struct RunEstimate {
  /// Steps of the run.
  std::int64_t steps = 0;
  /// Before the first step.
  double setup_s = 0.0;
  /// All steps.
  double training_s = 0.0;
  /// How often the validation part is evaluated.
  std::int64_t validations = 0;
  /// All of these together, and the test.
  double evaluation_s = 0.0;
  /// How often a checkpoint is saved.
  std::int64_t checkpoints = 0;
  /// All of these together.
  double checkpoint_s = 0.0;

  /// Returns all of it together.
  double total_s() const { return setup_s + training_s + evaluation_s + checkpoint_s; }
};

/// All that was measured.
struct ProfileFacts {
  /// What was profiled.
  std::string task, model;
  /// Replicas.
  int replicas = 1;
  /// Micro-batches of each, samples of a step and of one pass.
  std::int64_t accumulation = 1, global_batch = 0, local_batch = 0;
  /// The type of parameters.
  DType dtype = DType::kFloat32;
  /// Elements of each parameter, by the path of its module.
  std::map<std::string, std::int64_t> module_elements;
  /// Steps that were left out.
  std::int64_t warmup_steps = 0;
  /// Whether the recipe has fewer steps than were asked for.
  bool ended_early = false;
  /// Each measured step.
  std::vector<observe::StepTimes> steps;
  /// How many samples they had together.
  std::int64_t samples = 0;
  /// Layers, from steps of their own.
  LayerTable layers;
  /// What the process reaches at best.
  Ceilings ceilings;
  /// The meter after the measured steps, as observe::memory_json writes it.
  nlohmann::ordered_json memory;
  /// Its peak.
  observe::MemoryPeak peak;
  /// The operating system's count.
  std::optional<observe::ResidentMemory> resident;
  /// What parameters, gradients and optimizer state take in closed form.
  law::StateBytes state;
  /// Moments of each element.
  int moments = 0;
  /// How large a local batch may be.
  BatchFacts batch;
  /// What the whole run would take.
  RunEstimate estimate;
};

/// Returns what the walls are found from.
plan::WallFacts wall_facts(const ProfileFacts& facts);

/// Returns the whole profile; docs/cli/profile.md has its fields.
nlohmann::ordered_json to_json(const ProfileFacts& facts);

}  // namespace convoy::train

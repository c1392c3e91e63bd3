// Two probes side by side: whether ranks did what one process did, and if not, which known mistake explains it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/elastic/probe/probe.h"
#include "convoy/spec/replica_tree.h"

namespace convoy::elastic {

/// What the comparison has to know of the run.
struct CompareOptions {
  /// The replicas of each rank; one entry a rank.
  std::vector<spec::ReplicaRange> owners;
  /// Micro-batches of each replica in one step.
  int accumulation = 1;
  /// Steps of one epoch.
  std::int64_t steps_per_epoch = 1;
  /// Whether every bit must be equal; otherwise the tolerances below hold.
  bool exact = true;
};

/// How far elements may be apart where bits need not be equal, as a share of the largest magnitude in their tensor.
inline constexpr double kFloat32Tolerance = 1e-5;
/// The same for float64.
inline constexpr double kFloat64Tolerance = 1e-12;

/// One thing that was compared.
struct ProbeCheck {
  /// "initial state", "samples", "random layers", "gradient", "buffers", "parameters", "parameters after K updates".
  std::string name;
  /// Whether the ranks agree with the reference.
  bool ok = true;
  /// What was compared, or what differs first and by how much.
  std::string words;
};

/// A mistake that explains what differs.
struct ProbeFinding {
  /// Its name, for example "sum_instead_of_mean".
  std::string fault;
  /// One line for people: what, where, and what to look at.
  std::string words;
};

/// The result of a comparison.
struct ProbeReport {
  /// What was compared, in the order in which a person would look.
  std::vector<ProbeCheck> checks;
  /// What explains the differences, causes before consequences; at least one when a check failed.
  std::vector<ProbeFinding> findings;
  /// Elements that were compared, and those that differ.
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  /// The largest difference of gradients, parameters and buffers.
  double largest = 0.0;

  /// Returns whether every check holds.
  bool ok() const;
};

/// Compares a probe of ranks with that of one process that worked through the same replicas.
/// Errors:     kCorrupt when one of them lacks a step or tensor that the other has
ProbeReport compare_probes(const Probe& reference, const Probe& ranks, const CompareOptions& options);

/// Returns the layers whose result depends on which samples are together in a batch on one rank (batch norm), by the
/// running statistics that they keep.
std::vector<std::string> batch_dependent_layers(const Probe& probe);

}  // namespace convoy::elastic

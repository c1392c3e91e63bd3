// Layers that compute over all replicas of a step (synchronised batch norm): how they recognise each other and meet.
#pragma once

#include <span>
#include <vector>

namespace convoy::params {

/// Base of modules whose forward or backward pass meets the other replicas' through a ReplicaTeam. A model with such a
/// module is run in lock-step: all replicas of a rank are in the same step at once, each on a thread of its own.
class AcrossReplicas {
 public:
  virtual ~AcrossReplicas() = default;
};

/// The replicas that work through a step together, as one of them sees it.
/// Collective: gather, all replicas that have samples in the present micro-batch, in the same order
/// Threads:    the replica's own
class ReplicaTeam {
 public:
  virtual ~ReplicaTeam() = default;
  /// Returns the replica.
  virtual int replica() const = 0;
  /// Returns how many replicas there are.
  virtual int replicas() const = 0;
  /// Gives each replica the numbers of all: [replicas x own.size()], in order of replicas; zeros for those without samples.
  /// Blocking:   until all have come, at most the group's deadline
  /// Errors:     kDesync when replicas give different numbers of numbers, or one of the same rank ended its pass without
  ///             coming (one of another rank counts as without samples)
  virtual std::vector<double> gather(std::span<const double> own) = 0;

  /// Returns the team of the calling thread's replica; null outside of a step in lock-step.
  static ReplicaTeam* current();
};

/// Makes a team the calling thread's while it lives.
class TeamScope {
 public:
  /// Ownership:  borrows the team
  explicit TeamScope(ReplicaTeam& team);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  ReplicaTeam* const outer_;
};

}  // namespace convoy::params

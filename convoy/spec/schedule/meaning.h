// What each collective is by definition: which input elements an output element has to hold. Used by validate alone.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/spec/schedule/schedule.h"

namespace convoy::spec {

/// Answers for one schedule's collective.
class Meaning {
 public:
  /// What an output element holds.
  struct Origin {
    /// Whose input 0; -1 when it is the combination of every input of every rank.
    int rank = -1;
    /// Which element of the inputs.
    std::int64_t element = 0;
    /// How many output elements from this one on come from the same input, one after the other.
    std::int64_t count = 0;
  };

  /// Takes the sizes that the schedule states.
  /// Errors:     kInvalidArgument when they contradict each other
  explicit Meaning(const Schedule& schedule);

  /// Returns whether the collective's outputs are defined at all; false for an unknown name.
  bool defined() const { return defined_; }
  /// Returns whether every rank must have heard of every other's entry in the end.
  bool waits_for_all() const { return schedule_.collective == "barrier"; }
  /// Returns where element `element` of a rank's output comes from.
  Origin origin(int rank, std::int64_t element) const;

 private:
  std::int64_t& begin(int rank) { return begins_[static_cast<std::size_t>(rank)]; }
  void place_parts(const std::vector<std::int64_t>& sizes);

  const Schedule& schedule_;
  bool defined_ = true;
  // Where each rank's part lies in the whole, and the ranks by part.
  std::vector<std::int64_t> begins_;
  std::vector<int> owners_;
};

}  // namespace convoy::spec

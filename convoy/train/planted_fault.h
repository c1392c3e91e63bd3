// Planted faults: lets tests make a rank fail at a chosen step. Never set outside tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace convoy::train {

/// A fault that CONVOY_PLANT asks for, for example "nan:rank=1,step=5" or "kill:rank=0,step=10" or "stop:..."; "slow:..."
/// makes every step from this one on take longer.
class PlantedFault {
 public:
  /// Reads CONVOY_PLANT.
  /// Errors:     kInvalidArgument when it cannot be read
  explicit PlantedFault(int rank);
  /// Returns whether this rank's input of this step is to be made not-a-number.
  bool spoils_input(std::int64_t step) const { return due("nan", step); }
  /// Ends, stops or delays the process when it is its turn.
  void strike(std::int64_t step) const;

 private:
  bool due(const std::string& kind, std::int64_t step) const { return kind_ == kind && step_ == step; }
  std::string kind_;
  std::int64_t step_ = -1;
};

}  // namespace convoy::train

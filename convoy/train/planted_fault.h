// Planted faults: lets tests make a rank fail, or be slow, at a chosen step. Never set outside tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "convoy/train/planted/slow_parts.h"

namespace convoy::train {

/// A fault that CONVOY_PLANT asks for: "KIND:rank=R,step=S", for example "nan:rank=1,step=5"; rank -1 is every rank.
///
/// | kind | does |
/// |---|---|
/// | nan | makes the input of this step not-a-number |
/// | kill, stop | ends or stops the process in this step |
/// | slow | sleeps 50 ms in each step from this one on, before forward |
/// | slowlayer | sleeps 20 ms in each forward pass, from the beginning on |
/// | throttle | sleeps 5 ms in each forward pass of every rank, 10 ms on rank R, from the beginning on |
/// | slowread | sleeps 1 ms for each training sample that is read, from the beginning on |
/// | impatient | waits for each operation of the group straight after its launch, from the beginning on |
class PlantedFault {
 public:
  /// Reads CONVOY_PLANT.
  /// Errors:     kInvalidArgument when it cannot be read
  explicit PlantedFault(int rank);
  /// Returns whether this rank's input of this step is to be made not-a-number.
  bool spoils_input(std::int64_t step) const { return due("nan", step); }
  /// Ends, stops or delays the process when it is its turn.
  void strike(std::int64_t step) const;
  /// Returns the group, or one that is impatient.
  /// Ownership:  borrows the group; what is returned lives as long as the fault
  comm::Group& group(comm::Group& group);
  /// Returns the model, or one that is slow.
  std::unique_ptr<params::Model> model(std::unique_ptr<params::Model> model) const;
  /// Returns a slow view of a dataset, or null where it is to be read as it is.
  /// Ownership:  borrows the dataset
  std::unique_ptr<records::Dataset> reader(const records::Dataset& dataset) const;

 private:
  bool due(const std::string& kind, std::int64_t step) const { return kind_ == kind && step_ == step; }
  std::string kind_;
  bool mine_ = false;
  std::int64_t step_ = -1;
  std::unique_ptr<ImpatientGroup> impatient_;
};

}  // namespace convoy::train

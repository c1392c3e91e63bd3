// The layer table: from operators that ran to what each layer of the model took, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convoy/train/profile/operator_cost.h"

namespace convoy::train {

/// An operator that ran at the top level of a forward pass, with the backward nodes that belong to it.
struct OperatorRun {
  /// Its name, for example "conv2d".
  std::string name;
  /// The module whose parameter went in, for example "block1.conv"; "" where none did.
  std::string module;
  /// Its time in forward.
  double forward_ms = 0.0;
  /// The time of its nodes in backward.
  double backward_ms = 0.0;
  /// Its arithmetic and bytes.
  OperatorCost cost;
  /// The bytes of what came out.
  double output_bytes = 0.0;
};

/// One row: a module with parameters, or an operator without, as "relu 2" for the second of a pass.
struct LayerRow {
  /// The module's path, or the operator with its place.
  std::string name;
  /// The operators that it consists of, in order.
  std::vector<std::string> operators;
  /// Whether it is a module with parameters.
  bool has_parameters = false;
  /// Its time in each step: the sum over the step's forward passes.
  std::vector<double> forward_ms;
  /// The same of backward passes.
  std::vector<double> backward_ms;
  /// Its arithmetic and bytes in a step, on average.
  OperatorCost cost;
  /// The bytes of what came out in one pass, on average.
  double output_bytes = 0.0;
};

/// Gathers passes into rows.
/// Threads:    one caller at a time
class LayerTable {
 public:
  /// Adds what ran in one forward and backward pass, in order.
  void add_pass(const std::vector<OperatorRun>& runs);
  /// Ends a step; `forward_ms` and `backward_ms` are what its passes took as a whole.
  void end_step(double forward_ms, double backward_ms);

  /// Returns the rows in the order in which they first ran.
  const std::vector<LayerRow>& rows() const { return rows_; }
  /// Returns the whole passes' times in each step.
  const std::vector<double>& forward_ms() const { return forward_ms_; }
  /// Returns the same of backward.
  const std::vector<double>& backward_ms() const { return backward_ms_; }
  /// Returns how many steps were added.
  std::size_t steps() const { return forward_ms_.size(); }

 private:
  LayerRow& row_of(const std::string& name);

  std::vector<LayerRow> rows_;
  std::map<std::string, std::size_t> index_;
  std::vector<double> forward_ms_;
  std::vector<double> backward_ms_;
  std::int64_t passes_ = 0;
  // Sums over the steps that have ended and the present one; rows hold averages.
  std::vector<OperatorCost> cost_sums_;
  std::vector<double> output_sums_;
};

}  // namespace convoy::train

// Optimizers as elementwise updates of the flat space: SGD, Adam, AdamW.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/params/update/divided_update.h"
#include "convoy/params/flat_space.h"
#include "convoy/params/update/update_kernels.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/recipe.h"
#include "convoy/spec/stateful.h"

namespace convoy::params {

/// What an optimizer updates by: the sum of gradients over all samples of a step.
struct GradientSums {
  /// [FlatSpace::elements()], of the space's type.
  torch::Tensor flat;
  /// How many samples counted, and the factor of clipping.
  GradientScale scale;
  /// For each parameter whether any replica used it; others stay bitwise as they are, moments included.
  std::vector<bool> used;
  /// Where ranks of a host share the parameters (FlatSpace::memory): what each of them updates, by its place on the host.
  std::shared_ptr<const std::vector<std::vector<FlatSlice>>> shares{};
};

/// Which optimizer, with which constants; the learning rate is given to each update.
struct OptimizerOptions {
  /// "sgd", "adam" or "adamw".
  std::string kind = "sgd";
  /// SGD: the share of the old momentum that is kept; 0 for none.
  double momentum = 0.0;
  /// SGD: the share of the gradient that momentum leaves out.
  double dampening = 0.0;
  /// SGD: whether the step looks ahead (Nesterov's momentum).
  bool nesterov = false;
  /// Added to the gradient times the weight (sgd, adam) or taken from the weight (adamw).
  double weight_decay = 0.0;
  /// Adam: the share of the old first moment that is kept.
  double beta1 = 0.9;
  /// Adam: the share of the old second moment that is kept.
  double beta2 = 0.999;
  /// Adam: added to the root of the second moment.
  double epsilon = 1e-8;

  /// Takes the constants of a recipe.
  static OptimizerOptions from(const spec::TrainRecipe& recipe);
};

/// Updates parameters in the flat space. Every element is updated from itself alone, so any slice may be updated
/// anywhere with the same result: where the ranks of a host share the parameters, each updates its share of them.
/// Collective: constructor and update, all ranks of the space's memory, where it is shared
/// Threads:    one caller at a time
class Optimizer final : public spec::Stateful {
 public:
  /// Ownership:  borrows the flat space while it lives
  /// Errors:     kInvalidArgument for an unknown kind
  Optimizer(FlatSpace& space, const OptimizerOptions& options);

  /// Updates all used parameters. Where they are shared, it returns when all ranks have done their shares.
  /// Cost:       one pass over values, sums and moments, or this rank's share of it
  /// Errors:     what comm::barrier throws when a rank was lost meanwhile: settle() then completes the update
  void update(const GradientSums& sums, double rate);

  /// After a step or an update that failed because ranks of this host were lost: completes the update that any of them
  /// had begun, for all of them. Of `sums` only `flat` and `shares` count.
  /// Returns whether one was completed; otherwise the parameters are those from before the step.
  /// Collective: all survivors of the host, without their group
  /// Errors:     kInvalidArgument where nothing is shared; what DividedUpdate::settle throws
  bool settle(const GradientSums& sums, std::span<const int> lost, Duration limit);
  /// Returns the division of updates; null where parameters are not shared.
  const DividedUpdate* division() const { return division_.get(); }

  /// Lists "optimizer/<moment>/<parameter>" and "optimizer/updates", the number of updates of each parameter.
  std::vector<spec::StateEntry> state() override;

  /// Says which rank saves this state: replicated state is saved once.
  void set_owner(bool owner) { owner_ = owner; }

 private:
  template <typename T>
  void update_slice(const FlatSlice& slice, const T* sums, const GradientScale& scale, double rate);
  void update_slice(const FlatSlice& slice, const torch::Tensor& sums, const GradientScale& scale, double rate);
  void count_update(const std::vector<bool>& used);
  void take_shares(const GradientSums& sums);

  FlatSpace& space_;
  const OptimizerOptions options_;
  bool owner_ = true;
  std::vector<std::pair<std::string, torch::Tensor>> moments_;
  torch::Tensor updates_;
  // Set where parameters are shared.
  std::unique_ptr<DividedUpdate> division_;
  std::shared_ptr<const std::vector<std::vector<FlatSlice>>> shares_;
  // Divided updates that are complete, and those that updates_ has counted.
  std::int64_t completed_ = 0;
  std::int64_t counted_ = 0;
};

/// Writes the sums of squares of the canonical blocks of elements [range.begin, range.end) of a stretch of the flat
/// space to `sums` (see block_square_sums); the range begins on a block.
void block_square_sums(const FlatSpace& space, const torch::Tensor& flat, spec::ElementRange range, double* sums);

}  // namespace convoy::params

// Elementwise optimizer updates and canonical norms on plain slices: the arithmetic, apart from who holds which slice.
#pragma once

#include <cstdint>

namespace convoy::params {

/// How the exchanged sum becomes the gradient: gradient = sum / count, times `clip` when below 1.
struct GradientScale {
  /// What the sum is divided by.
  double count = 1.0;
  /// What the quotient is multiplied by.
  double clip = 1.0;
};

/// The numbers of one SGD update.
struct SgdCoefficients {
  /// The learning rate.
  double rate = 0.0;
  /// The share of the old momentum that is kept.
  double momentum = 0.0;
  /// The share of the gradient that momentum leaves out.
  double dampening = 0.0;
  /// Times the weight, added to the gradient.
  double weight_decay = 0.0;
  /// Whether the step looks ahead (Nesterov's momentum).
  bool nesterov = false;
  /// Whether the momentum starts with this gradient.
  bool first = false;
};

/// The numbers of one Adam or AdamW update.
struct AdamCoefficients {
  /// The learning rate.
  double rate = 0.0;
  /// The share of the old first moment that is kept.
  double beta1 = 0.9;
  /// The share of the old second moment that is kept.
  double beta2 = 0.999;
  /// Added to the root of the second moment.
  double epsilon = 1e-8;
  /// The decay of weights.
  double weight_decay = 0.0;
  /// Whether decay is taken from the weights (AdamW) and not added to the gradient.
  bool decoupled = false;
  /// The number of this update of these elements, counted from 1.
  std::int64_t step = 1;
};

/// Updates n values by SGD; `momentum` may be null when the coefficient is 0.
template <typename T>
void sgd_update(T* values, const T* sums, T* momentum, std::int64_t n, const GradientScale& scale,
                const SgdCoefficients& c);

/// Updates n values by Adam or AdamW.
/// Source:     Kingma, Ba: Adam, ICLR 2015; Loshchilov, Hutter: Decoupled weight decay regularization, ICLR 2019
template <typename T>
void adam_update(T* values, const T* sums, T* first_moment, T* second_moment, std::int64_t n,
                 const GradientScale& scale, const AdamCoefficients& c);

/// Writes the sum of squares of each canonical block (spec::kBlockElements) of n elements, in double, to `sums`; a sum is
/// not finite exactly when an element of its block is not. The whole is spec::tree_sum over all blocks, so whoever holds
/// which blocks, the norm is the same.
template <typename T>
void block_square_sums(const T* values, std::int64_t n, double* sums);

}  // namespace convoy::params

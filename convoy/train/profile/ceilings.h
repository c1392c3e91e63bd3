// Ceilings: how fast this process multiplies matrices and moves memory, measured beside the model.
#pragma once

#include <torch/torch.h>

namespace convoy::train {

/// What this process reaches at best with its threads and its BLAS.
struct Ceilings {
  /// Arithmetic of a product of two square matrices, 10^9 multiplications and additions a second.
  double matrix_gflop_per_s = 0.0;
  /// Bytes read and written by a copy between buffers that caches do not hold, 10^9 a second.
  double memory_gb_per_s = 0.0;
};

/// Measures both with tensors of the type, best of the repeats.
/// Cost:       about 0.4 s, and 128 MiB
Ceilings measure_ceilings(torch::ScalarType type);

}  // namespace convoy::train

// Which BLAS this process computes with: results are equal bit for bit only under the same kernel and threads.
#pragma once

#include <string>

namespace convoy::train {

/// The linear algebra behind libtorch.
struct BlasFacts {
  /// "OpenBLAS 0.3.21", "BLIS", or "unknown".
  std::string library;
  /// The kernel that the library chose, for example "SkylakeX"; "unknown" where it does not tell.
  std::string kernel;
  /// Compute threads.
  int threads = 1;
};

/// Asks the libraries that are loaded.
BlasFacts blas_facts();

}  // namespace convoy::train

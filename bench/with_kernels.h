// Starts a benchmark with the BLAS kernel and the one thread that `convoy run` gives its ranks.
#pragma once

#include <unistd.h>

#include <cstdlib>

#include "convoy/elastic/launcher/rank_environment.h"

namespace convoy {

/// Starts this program again with OPENBLAS_CORETYPE and one thread, unless the former is set: OpenBLAS reads its variables
/// when it is loaded.
inline void start_with_kernels(char** argv) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  ::setenv("OPENBLAS_CORETYPE", elastic::openblas_coretype(elastic::detect_cpu()).value_or("").c_str(), 1);
  ::setenv("OMP_NUM_THREADS", "1", 1);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace convoy

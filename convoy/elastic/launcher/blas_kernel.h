// Which of OpenBLAS's kernels fits this processor; OpenBLAS itself does not know newer ones and takes its oldest.
#pragma once

#include <optional>
#include <string>

namespace convoy::elastic {

/// The instruction sets that the choice of a kernel looks at.
struct CpuFeatures {
  /// AVX-512 with the parts F, DQ, BW and VL, which OpenBLAS's SkylakeX kernels use.
  bool avx512 = false;
  /// AVX2 and FMA.
  bool avx2_fma = false;
  /// Whether AMD made the processor.
  bool amd = false;
};

/// Returns what this machine's processor and system support.
CpuFeatures detect_cpu();

/// Returns the value for OPENBLAS_CORETYPE, or nothing where OpenBLAS should choose for itself.
std::optional<std::string> openblas_coretype(const CpuFeatures& cpu);

}  // namespace convoy::elastic

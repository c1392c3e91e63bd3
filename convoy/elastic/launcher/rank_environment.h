// The environment that a rank is started with.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace convoy::elastic {

/// Environment variables by name.
using Environment = std::map<std::string, std::string>;

/// How many compute threads a rank may use.
struct ThreadPolicy {
  /// The number of threads.
  int threads = 1;
  /// Whether the number replaces what the user set. A recipe's number is part of the result, so it does; the default
  /// for any other program does not.
  bool overwrite = false;
};

/// Who a rank is and how it finds the others.
struct RankIdentity {
  /// RANK and LOCAL_RANK: the launcher serves one host.
  int rank = 0;
  /// WORLD_SIZE and LOCAL_WORLD_SIZE.
  int ranks = 1;
  /// CONVOY_STORE; not set when empty.
  std::string store_address;
  /// CONVOY_JOB_TOKEN; not set when empty.
  std::string token;
};

/// Returns the environment of this process.
Environment current_environment();

/// Sets OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS by the policy. Without `overwrite` a variable that is
/// set stays as it is; and where OMP_NUM_THREADS is set the other two are left alone, because they follow it.
void set_threads(Environment& environment, const ThreadPolicy& policy);

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

/// Sets OPENBLAS_CORETYPE to the kernel (nothing: OpenBLAS chooses), unless it is set at all, even to nothing.
void set_blas_kernel(Environment& environment, const std::optional<std::string>& coretype);

/// Sets the variables that say who the rank is, replacing those of a launcher further up.
void set_identity(Environment& environment, const RankIdentity& identity);

/// Returns the variables that decide how BLAS computes, as far as they are set: for the record of a run.
Environment blas_variables(const Environment& environment);

}  // namespace convoy::elastic

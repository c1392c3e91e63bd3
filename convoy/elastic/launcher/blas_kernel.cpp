// The choice of OpenBLAS's kernel by the processor's instruction sets.
#include "convoy/elastic/launcher/blas_kernel.h"

namespace convoy::elastic {

CpuFeatures detect_cpu() {
  CpuFeatures cpu;
#if defined(__x86_64__)
  __builtin_cpu_init();
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  cpu.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.amd = __builtin_cpu_is("amd") != 0;
#endif
  return cpu;
}

std::optional<std::string> openblas_coretype(const CpuFeatures& cpu) {
  if (cpu.avx512) return "SkylakeX";
  if (cpu.avx2_fma) return cpu.amd ? "Zen" : "Haswell";
  return std::nullopt;
}

}  // namespace convoy::elastic

// Lets the compiler make one loop for each instruction set; the loader picks the best one of the processor.
#pragma once

// Results do not depend on the choice: loops marked so are elementwise or have a fixed order of their own, and
// -ffp-contract=off keeps the compiler from fusing products with sums. Sanitizers and clang get plain loops: the
// functions that pick at load time run before a sanitizer is ready.
#if defined(__GNUC__) && !defined(__clang__) && !defined(CONVOY_SANITIZED) && defined(__x86_64__)
/// Marks a function whose loops are compiled for AVX-512, AVX2 and the base instruction set.
#define CONVOY_SIMD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CONVOY_SIMD_CLONES
#endif

// Which instruction sets the kernels are compiled for; included before anything else of Highway.
#pragma once

// Left out: sets that no processor of interest stops at, and vectors without a fixed size, which no struct can hold.
#define CONVOY_UNUSED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#if defined(CONVOY_SANITIZED)
// Watched code takes minutes to compile: one set of vectors, and none, do.
#define HWY_DISABLED_TARGETS (CONVOY_UNUSED_TARGETS | HWY_SSE4 | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS CONVOY_UNUSED_TARGETS
#endif

#include <hwy/targets.h>

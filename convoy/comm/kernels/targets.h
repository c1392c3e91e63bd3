// Which instruction sets the kernels are compiled for; included before anything else of Highway.
#pragma once

// Left out: sets that no processor of interest stops at, and vectors without a fixed size, which no struct can hold.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)  // all others stay

#include <hwy/targets.h>

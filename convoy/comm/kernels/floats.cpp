// The kernels for float32 and float64: compiled for several instruction sets, the best one is chosen when a kernel first runs.
#include "convoy/comm/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convoy/comm/kernels/floats.cpp"  // this file, once for each instruction set
#include <hwy/foreach_target.h>

#include "convoy/comm/kernels/walk_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

void float32_here(const Reduction& reduction) { reduce_as<Plain<float>>(reduction); }
void float64_here(const Reduction& reduction) { reduce_as<Plain<double>>(reduction); }

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convoy::comm::kernels {

HWY_EXPORT(float32_here);
HWY_EXPORT(float64_here);

void reduce_float32(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(float32_here)(reduction); }
void reduce_float64(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(float64_here)(reduction); }

}  // namespace convoy::comm::kernels
#endif

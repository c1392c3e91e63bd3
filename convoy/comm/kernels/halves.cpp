// The kernels for bfloat16 and float16: compiled for several instruction sets, the best one is chosen when a kernel first runs.
#include "convoy/comm/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convoy/comm/kernels/halves.cpp"  // this file, once for each instruction set
#include <hwy/foreach_target.h>

#include "convoy/comm/kernels/half_elements_inl.h"
#include "convoy/comm/kernels/walk_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

void bfloat16_here(const Reduction& reduction) { reduce_as<BFloat16>(reduction); }
void float16_here(const Reduction& reduction) { reduce_as<Float16>(reduction); }

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convoy::comm::kernels {

HWY_EXPORT(bfloat16_here);
HWY_EXPORT(float16_here);

void reduce_bfloat16(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(bfloat16_here)(reduction); }
void reduce_float16(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(float16_here)(reduction); }

}  // namespace convoy::comm::kernels
#endif

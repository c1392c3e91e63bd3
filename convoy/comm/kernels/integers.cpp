// The kernels for int32 and int64: compiled for several instruction sets, the best one is chosen when a kernel first runs.
#include "convoy/comm/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convoy/comm/kernels/integers.cpp"  // this file, once for each instruction set
#include <hwy/foreach_target.h>

#include "convoy/comm/kernels/walk_inl.h"

HWY_BEFORE_NAMESPACE();
namespace convoy::comm::kernels {
namespace HWY_NAMESPACE {

void int32_here(const Reduction& reduction) { reduce_as<Plain<std::int32_t>>(reduction); }
void int64_here(const Reduction& reduction) { reduce_as<Plain<std::int64_t>>(reduction); }

}  // namespace HWY_NAMESPACE
}  // namespace convoy::comm::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace convoy::comm::kernels {

HWY_EXPORT(int32_here);
HWY_EXPORT(int64_here);

void reduce_int32(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(int32_here)(reduction); }
void reduce_int64(const Reduction& reduction) { HWY_DYNAMIC_DISPATCH(int64_here)(reduction); }

}  // namespace convoy::comm::kernels
#endif

// What a wait that spins has to know of the processor.
#pragma once

#include <sched.h>

#include <thread>

namespace convoy {

/// Returns how many processors this process may run on.
inline int usable_processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// Tells the processor that this thread spins, so that its sibling gets on.
inline void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace convoy

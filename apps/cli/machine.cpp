// Facts about the machine from the kernel.
#include "apps/cli/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "convoy/elastic/launcher/blas_kernel.h"

namespace convoy::cli {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

}  // namespace

nlohmann::ordered_json describe_machine() {
  nlohmann::ordered_json machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine["host"] = names.nodename;
    machine["kernel"] = std::string(names.sysname) + " " + names.release;
    machine["architecture"] = names.machine;
  }
  const elastic::CpuFeatures cpu = elastic::detect_cpu();
  machine["cpu"] = cpu_model();
  machine["cpu_features"] = {{"avx512", cpu.avx512}, {"avx2_fma", cpu.avx2_fma}};
  machine["cores"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  machine["usable_cores"] = usable_cores();
  machine["memory_bytes"] = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return machine;
}

}  // namespace convoy::cli

// What is set, kept and replaced in a rank's environment.
#include "convoy/elastic/launcher/rank_environment.h"

#include <unistd.h>

#include <string_view>

namespace convoy::elastic {
namespace {

constexpr const char* kOpenMpThreads = "OMP_NUM_THREADS";
constexpr const char* kBlasThreads[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"};
constexpr const char* kCoretype = "OPENBLAS_CORETYPE";

void set_or_remove(Environment& environment, const char* name, const std::string& value) {
  if (value.empty()) {
    environment.erase(name);
  } else {
    environment[name] = value;
  }
}

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    // The first of two equal names is the one that getenv finds.
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

void set_threads(Environment& environment, const ThreadPolicy& policy) {
  const std::string threads = std::to_string(policy.threads);
  if (policy.overwrite) {
    environment[kOpenMpThreads] = threads;
    for (const char* name : kBlasThreads) environment[name] = threads;
    return;
  }
  if (environment.count(kOpenMpThreads) > 0) return;
  environment[kOpenMpThreads] = threads;
  for (const char* name : kBlasThreads) environment.emplace(name, threads);
}

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

void set_blas_kernel(Environment& environment, const std::optional<std::string>& coretype) {
  if (coretype) environment.emplace(kCoretype, *coretype);
}

void set_identity(Environment& environment, const RankIdentity& identity) {
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(identity.rank);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(identity.ranks);
  set_or_remove(environment, "CONVOY_STORE", identity.store_address);
  set_or_remove(environment, "CONVOY_JOB_TOKEN", identity.token);
}

Environment blas_variables(const Environment& environment) {
  Environment found;
  const auto keep = [&](const char* name) {
    const auto at = environment.find(name);
    if (at != environment.end()) found.insert(*at);
  };
  keep(kOpenMpThreads);
  for (const char* name : kBlasThreads) keep(name);
  keep(kCoretype);
  return found;
}

}  // namespace convoy::elastic

#include "convoy/train/blas_facts.h"

#include <dlfcn.h>
#include <torch/torch.h>

namespace convoy::train {
namespace {

// Calls a function without arguments that returns a text, if a loaded library has it.
std::string ask(const char* function) {
  using Text = char* (*)();
  auto* found = reinterpret_cast<Text>(dlsym(RTLD_DEFAULT, function));
  const char* answer = found == nullptr ? nullptr : found();
  return answer == nullptr ? "" : answer;
}

}  // namespace

BlasFacts blas_facts() {
  BlasFacts facts{"unknown", "unknown", torch::get_num_threads()};
  // libtorch links the generic name; asking for any symbol of it first makes sure that the library is loaded.
  if (const std::string kernel = ask("openblas_get_corename"); !kernel.empty()) {
    facts.kernel = kernel;
    const std::string config = ask("openblas_get_config");  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
    const auto second_space = config.find(' ', config.find(' ') + 1);
    facts.library = config.rfind("OpenBLAS", 0) == 0 ? config.substr(0, second_space) : "OpenBLAS";
  } else if (dlsym(RTLD_DEFAULT, "bli_info_get_version_str") != nullptr) {
    facts.library = "BLIS " + ask("bli_info_get_version_str");
  }
  return facts;
}

}  // namespace convoy::train

#include "convoy/train/planted_fault.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

// What a slow rank takes longer for each step.
constexpr std::chrono::milliseconds kSlowness{50};

}  // namespace

PlantedFault::PlantedFault(int rank) {
  const char* text = std::getenv("CONVOY_PLANT");
  if (text == nullptr || std::string_view(text).empty() || std::string_view(text).starts_with("verify:")) return;
  char kind[16] = {};
  int at_rank = -1;
  long long step = -1;
  if (std::sscanf(text, "%15[a-z]:rank=%d,step=%lld", kind, &at_rank, &step) != 3) {
    throw Error(ErrorCode::kInvalidArgument, std::string("CONVOY_PLANT cannot be read: ") + text);
  }
  if (at_rank != rank) return;
  kind_ = kind;
  step_ = step;
}

void PlantedFault::strike(std::int64_t step) const {
  if (due("kill", step)) ::raise(SIGKILL);
  if (due("stop", step)) ::raise(SIGSTOP);
  if (kind_ == "slow" && step >= step_) std::this_thread::sleep_for(kSlowness);
}

}  // namespace convoy::train

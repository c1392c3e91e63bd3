#include "convoy/train/planted_fault.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "convoy/base/error.h"

namespace convoy::train {

PlantedFault::PlantedFault(int rank) {
  const char* text = std::getenv("CONVOY_PLANT");
  if (text == nullptr) return;
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
}

}  // namespace convoy::train

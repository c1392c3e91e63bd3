#include "convoy/train/planted_fault.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

using std::chrono::milliseconds;

// What a slow rank takes longer for each step, a slow layer for each pass, and slow storage for each sample.
constexpr milliseconds kSlowness{50};
constexpr milliseconds kSlowLayer{20};
constexpr milliseconds kSlowRead{1};
// What a forward pass takes longer where one rank is throttled to half of the others' speed.
constexpr milliseconds kFullSpeed{5};
constexpr milliseconds kHalfSpeed{10};

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
  mine_ = at_rank == rank || at_rank == -1;
  if (!mine_ && std::string_view(kind) != "throttle") return;
  kind_ = kind;
  step_ = step;
}

void PlantedFault::strike(std::int64_t step) const {
  if (due("kill", step)) ::raise(SIGKILL);
  if (due("stop", step)) ::raise(SIGSTOP);
  if (kind_ == "slow" && step >= step_) system_clock().sleep_for(kSlowness);
}

comm::Group& PlantedFault::group(comm::Group& group) {
  if (kind_ != "impatient") return group;
  impatient_ = std::make_unique<ImpatientGroup>(group);
  return *impatient_;
}

std::unique_ptr<params::Model> PlantedFault::model(std::unique_ptr<params::Model> model) const {
  if (kind_ == "throttle") return std::make_unique<SlowModel>(std::move(model), mine_ ? kHalfSpeed : kFullSpeed);
  if (kind_ != "slowlayer") return model;
  return std::make_unique<SlowModel>(std::move(model), kSlowLayer);
}

std::unique_ptr<records::Dataset> PlantedFault::reader(const records::Dataset& dataset) const {
  if (kind_ != "slowread") return nullptr;
  return std::make_unique<SlowDataset>(dataset, kSlowRead);
}

}  // namespace convoy::train

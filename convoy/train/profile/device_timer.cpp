#include "convoy/train/profile/device_timer.h"

#include <vector>

#include "convoy/base/error.h"

namespace convoy::train {
namespace {

class ProcessorTimer final : public DeviceTimer {
 public:
  explicit ProcessorTimer(const Clock& clock) : clock_(clock) {}

  void reset() override { marks_.clear(); }
  std::size_t mark() override {
    marks_.push_back(clock_.now());
    return marks_.size() - 1;
  }
  void synchronise() override {}  // what was called has been done
  Duration between(std::size_t first, std::size_t last) const override {
    CONVOY_CHECK(first < marks_.size() && last < marks_.size(), "both marks were made since the last reset");
    return marks_[last] - marks_[first];
  }

 private:
  const Clock& clock_;
  std::vector<TimePoint> marks_;
};

}  // namespace

std::unique_ptr<DeviceTimer> make_processor_timer(const Clock& clock) {
  return std::make_unique<ProcessorTimer>(clock);
}

}  // namespace convoy::train

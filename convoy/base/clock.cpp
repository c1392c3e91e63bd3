#include "convoy/base/clock.h"

#include <thread>

namespace convoy {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  void sleep_for(Duration duration) override { std::this_thread::sleep_for(duration); }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace convoy

// DeviceTimer: moments in a device's own queue. Whoever marks them does not wait; the queue is waited for at the edges of
// a window only, so that measuring does not change what is measured.
#pragma once

#include <cstddef>
#include <memory>

#include "convoy/base/clock.h"

namespace convoy::train {

/// Times what a device does.
/// Threads:    one caller at a time
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  /// Forgets all marks.
  virtual void reset() = 0;
  /// Marks the moment at which the device reaches this place of its queue, and returns the mark's number.
  /// Blocking:   never waits for the device
  virtual std::size_t mark() = 0;
  /// Waits until the device has passed all marks: at the edges of a window.
  virtual void synchronise() = 0;
  /// Returns the time between two marks that the device has passed.
  virtual Duration between(std::size_t first, std::size_t last) const = 0;
};

/// Makes the timer of the processor, whose queue is the caller itself.
std::unique_ptr<DeviceTimer> make_processor_timer(const Clock& clock = system_clock());

}  // namespace convoy::train

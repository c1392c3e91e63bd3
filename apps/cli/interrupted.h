// Interrupted: a command that a signal asked to stop.
#pragma once

#include <string>

#include "convoy/base/error.h"

namespace convoy::cli {

/// Ends a command with status 128 + signal, as a shell's users expect.
class Interrupted : public Error {
 public:
  /// Takes the signal and a line on what was stopped.
  Interrupted(int signal, const std::string& message) : Error(ErrorCode::kFailed, message), signal_(signal) {}
  /// Returns the exit status.
  int status() const { return 128 + signal_; }

 private:
  int signal_;
};

}  // namespace convoy::cli

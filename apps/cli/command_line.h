// Understands the command line.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "apps/cli/requests.h"

namespace convoy::cli {

/// The version, equal to the project's in CMakeLists.txt.
inline constexpr const char* kVersion = "0.1.0";

/// Says that the command line is already answered, and with which exit status.
struct Answered {
  /// The exit status.
  int status = 0;
};

/// Returns the request, or Answered after help, the version or one line about bad usage were printed.
std::variant<Request, Answered> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace convoy::cli

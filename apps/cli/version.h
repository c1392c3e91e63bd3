// The version of the command.
#pragma once

namespace convoy::cli {

/// The version, equal to the project's in CMakeLists.txt.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace convoy::cli

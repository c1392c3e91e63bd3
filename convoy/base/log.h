// The log: the only singleton. Progress and logs go to standard error or a file, never to standard output.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace convoy {

/// How important a line is; kDebug lines appear only when asked for.
enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Sends the log to a file instead of standard error, each line with time, level and `who` (for example "rank 1").
/// Errors:     kIo when the file cannot be opened
void log_to_file(const std::string& path, const std::string& who);

/// Sets the least important level that is still written.
void set_log_level(LogLevel level);

/// Writes one line.
/// Threads:    any
void log_line(LogLevel level, std::string_view line);

/// Writes one formatted line at level info.
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}

/// Writes one formatted line at level warning.
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}

/// Writes one formatted line at level error.
template <typename... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

/// Writes one formatted line at level debug.
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace convoy

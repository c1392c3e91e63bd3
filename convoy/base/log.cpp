#include "convoy/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "convoy/base/error.h"

namespace convoy {
namespace {

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("convoy", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    return made;
  }();
  return instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void log_to_file(const std::string& path, const std::string& who) {
  try {
    auto made = std::make_shared<spdlog::logger>(who, std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %n: %v");
    made->flush_on(spdlog::level::info);
    made->set_level(logger()->level());
    logger() = std::move(made);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(ErrorCode::kIo, fmt::format("cannot open log file {}: {}", path, error.what()));
  }
}

void set_log_level(LogLevel level) { logger()->set_level(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view line) { logger()->log(to_spdlog(level), "{}", line); }

}  // namespace convoy

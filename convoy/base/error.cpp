#include "convoy/base/error.h"

#include <fmt/format.h>

#include <vector>

namespace convoy {
namespace {

std::string whole_message(const std::string& message, const ErrorContext& context) {
  std::vector<std::string> parts;
  if (context.global_rank) parts.push_back(fmt::format("rank {}", *context.global_rank));
  if (context.peer) parts.push_back(fmt::format("peer {}", *context.peer));
  if (!context.group.empty()) parts.push_back(fmt::format("group {}", context.group));
  if (!context.operation.empty()) parts.push_back(context.operation);
  if (context.sequence) parts.push_back(fmt::format("#{}", *context.sequence));
  if (parts.empty()) return message;
  return fmt::format("{} [{}]", message, fmt::join(parts, ", "));
}

std::string_view file_name(std::string_view path) {
  const auto at = path.find("convoy/");
  return at == std::string_view::npos ? path : path.substr(at);
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "InvalidArgument";
    case ErrorCode::kNotSupported: return "NotSupported";
    case ErrorCode::kDesync: return "Desync";
    case ErrorCode::kTimeout: return "Timeout";
    case ErrorCode::kPeerLost: return "PeerLost";
    case ErrorCode::kAborted: return "Aborted";
    case ErrorCode::kIo: return "Io";
    case ErrorCode::kCorrupt: return "Corrupt";
    case ErrorCode::kOutOfMemory: return "OutOfMemory";
    case ErrorCode::kFailed: return "Failed";
    case ErrorCode::kInternal: return "Internal";
  }
  return "Unknown";
}

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotSupported: return 2;
    case ErrorCode::kTimeout:
    case ErrorCode::kPeerLost:
    case ErrorCode::kAborted: return 3;
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt: return 4;
    default: return 1;
  }
}

Error::Error(ErrorCode code, const std::string& message, ErrorContext context)
    : std::runtime_error(whole_message(message, context)),
      code_(code),
      message_(message),
      context_(std::move(context)) {}

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  throw Error(ErrorCode::kInternal,
              fmt::format("{} (check '{}' failed at {}:{})", message, condition, file_name(file), line));
}

}  // namespace convoy

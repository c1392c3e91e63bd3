// The one exception type of Convoy, and the checks that throw it.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace convoy {

/// Says who has to act on an error.
/// The caller: kInvalidArgument, kNotSupported, kDesync. The supervisor: kTimeout, kPeerLost, kAborted, kIo.
/// The operator: kCorrupt, kOutOfMemory. The authors of Convoy: kInternal.
/// A run that learnt nothing it can use (a non-finite loss): kFailed.
enum class ErrorCode {
  kInvalidArgument,
  kNotSupported,
  kDesync,
  kTimeout,
  kPeerLost,
  kAborted,
  kIo,
  kCorrupt,
  kOutOfMemory,
  kFailed,
  kInternal,
};

/// Returns the name of a code without its k, for example "Timeout".
std::string_view to_string(ErrorCode code);

/// Returns the exit status of a command that ends with this error (design: 1 failed, 2 bad input, 3 lost ranks or
/// deadline, 4 storage).
int exit_status(ErrorCode code);

/// What an error knows about where it happened; absent fields are left out of the message.
struct ErrorContext {
  /// The rank that raised the error.
  std::optional<int> global_rank;
  /// The rank that the error is about.
  std::optional<int> peer;
  /// The process group's name.
  std::string group;
  /// The operation, for example "all_reduce".
  std::string operation;
  /// The operation's sequence number in its group.
  std::optional<std::uint64_t> sequence;
};

/// The one exception type of Convoy.
/// Threads:    immutable after construction, apart from with_context
class Error : public std::runtime_error {
 public:
  /// Makes an error whose what() is the message followed by the context in brackets.
  Error(ErrorCode code, const std::string& message, ErrorContext context = {});

  /// Returns who has to act.
  ErrorCode code() const { return code_; }
  /// Returns where it happened.
  const ErrorContext& context() const { return context_; }
  /// Returns the message without the context.
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
  ErrorContext context_;
};

/// Throws kInternal with the place of a failed CONVOY_CHECK; never called directly.
[[noreturn]] void fail_check(const char* condition, const char* file, int line, const std::string& message);

}  // namespace convoy

/// Guards callers, in release builds too: throws kInternal with the message when the condition does not hold.
#define CONVOY_CHECK(condition, message)                                        \
  do {                                                                          \
    if (!(condition)) ::convoy::fail_check(#condition, __FILE__, __LINE__, message); \
  } while (false)

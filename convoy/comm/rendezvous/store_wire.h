// What store clients and the server say to each other: frames of a length and a body, over a stream socket.
//
// A client greets with a nonce and gets the server's. It answers with a proof over both, and gets the server's proof;
// only then is it let in, and only then does it believe the server. After that it has one open request at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "convoy/base/error.h"

namespace convoy::comm {

/// The longest body of a frame.
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;
/// The longest body of the first frame, from a client that is not yet let in.
inline constexpr std::size_t kMaxHelloBytes = 256;
/// The bytes of a frame's length.
inline constexpr std::size_t kFrameHeadBytes = 4;

/// What a client asks for.
enum class StoreVerb : std::uint8_t { kHello = 1, kSet = 2, kGet = 3, kTryGet = 4, kAdd = 5, kRemove = 6, kProof = 7 };

/// A client's request.
struct StoreRequest {
  /// What is asked for.
  StoreVerb verb = StoreVerb::kHello;
  /// The key; the client's nonce of a hello; the proof of a proof.
  std::string key;
  /// The value to set.
  std::string value;
  /// The number to add.
  std::int64_t number = 0;
};

/// How a request went.
enum class StoreStatus : std::uint8_t { kOk = 0, kAbsent = 1, kRefused = 2, kFailed = 3 };

/// The server's answer.
struct StoreReply {
  /// How the request went.
  StoreStatus status = StoreStatus::kOk;
  /// The code of a failure.
  ErrorCode code = ErrorCode::kInternal;
  /// The value, or the message of a failure.
  std::string text;
  /// The new number after an add.
  std::int64_t number = 0;
};

/// Returns a whole frame.
/// Errors:     kInvalidArgument when it is longer than a frame may be
std::string encode(const StoreRequest& request);
/// Returns a whole frame.
std::string encode(const StoreReply& reply);

/// Returns what a body says; nothing when it is malformed.
std::optional<StoreRequest> decode_request(std::string_view body);
/// Returns what a body says; nothing when it is malformed.
std::optional<StoreReply> decode_reply(std::string_view body);

/// Takes the first whole frame's body from the front of the bytes; nothing when more bytes are needed.
/// Errors:     kCorrupt when the frame is longer than `most` bytes
std::optional<std::string> take_frame(std::string& bytes, std::size_t most);

/// Who shows that it knows the token.
enum class StoreSide { kClient, kServer };

/// Returns bytes from the kernel's generator for one greeting.
std::string make_nonce();

/// Returns what shows that a side knows the token, in this greeting only: HMAC-SHA256, under the token, of the side and
/// both nonces. The token itself never goes over the wire.
/// Source:     RFC 2104
std::string proof_of(StoreSide side, const std::string& token, std::string_view client_nonce,
                     std::string_view server_nonce);

/// Returns whether two texts are equal, in a time that does not depend on where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace convoy::comm

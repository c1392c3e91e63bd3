// Frames as bytes, numbers in little-endian order.
#include "convoy/comm/rendezvous/store_wire.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include <array>

#include "convoy/comm/byte_fields.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kNonceBytes = 32;

std::string frame(const std::string& body) {
  if (body.size() > kMaxFrameBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} bytes are too many for the store: at most {}", body.size(), kMaxFrameBytes));
  }
  FieldWriter fields;
  fields.text(body);
  return fields.bytes();
}

}  // namespace

std::string encode(const StoreRequest& request) {
  FieldWriter fields;
  fields.number(static_cast<std::uint64_t>(request.verb), 1);
  fields.text(request.key);
  fields.text(request.value);
  fields.number(static_cast<std::uint64_t>(request.number));
  return frame(fields.bytes());
}

std::string encode(const StoreReply& reply) {
  FieldWriter fields;
  fields.number(static_cast<std::uint64_t>(reply.status), 1);
  fields.number(static_cast<std::uint64_t>(reply.code), 1);
  fields.text(reply.text);
  fields.number(static_cast<std::uint64_t>(reply.number));
  return frame(fields.bytes());
}

std::optional<StoreRequest> decode_request(std::string_view body) {
  FieldReader reader(body);
  StoreRequest request;
  const std::uint64_t verb = reader.number(1);
  request.key = reader.text();
  request.value = reader.text();
  request.number = static_cast<std::int64_t>(reader.number(8));
  if (!reader.finished() || verb < 1 || verb > static_cast<std::uint64_t>(StoreVerb::kProof)) return std::nullopt;
  request.verb = static_cast<StoreVerb>(verb);
  return request;
}

std::optional<StoreReply> decode_reply(std::string_view body) {
  FieldReader reader(body);
  StoreReply reply;
  const std::uint64_t status = reader.number(1);
  const std::uint64_t code = reader.number(1);
  reply.text = reader.text();
  reply.number = static_cast<std::int64_t>(reader.number(8));
  if (!reader.finished() || status > static_cast<std::uint64_t>(StoreStatus::kFailed) ||
      code > static_cast<std::uint64_t>(ErrorCode::kInternal)) {
    return std::nullopt;
  }
  reply.status = static_cast<StoreStatus>(status);
  reply.code = static_cast<ErrorCode>(code);
  return reply;
}

std::optional<std::string> take_frame(std::string& bytes, std::size_t most) {
  if (bytes.size() < kFrameHeadBytes) return std::nullopt;
  const std::uint64_t length = FieldReader(bytes).number(kFrameHeadBytes);
  if (length > most) throw Error(ErrorCode::kCorrupt, fmt::format("a frame of {} bytes, at most {}", length, most));
  if (bytes.size() - kFrameHeadBytes < length) return std::nullopt;
  std::string body = bytes.substr(kFrameHeadBytes, length);
  bytes.erase(0, kFrameHeadBytes + length);
  return body;
}

std::string make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    throw Error(ErrorCode::kIo, "the kernel gives no random numbers");
  }
  return nonce;
}

std::string proof_of(StoreSide side, const std::string& token, std::string_view client_nonce,
                     std::string_view server_nonce) {
  FieldWriter said;
  said.text(side == StoreSide::kClient ? "convoy store client" : "convoy store server");
  said.text(client_nonce);
  said.text(server_nonce);
  const std::string& bytes = said.bytes();
  crypto_auth_hmacsha256_state state;
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> proof{};
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(token.data()), token.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  crypto_auth_hmacsha256_final(&state, proof.data());
  return std::string(proof.begin(), proof.end());
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace convoy::comm

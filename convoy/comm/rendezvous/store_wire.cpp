// Frames as bytes, numbers in little-endian order.
#include "convoy/comm/rendezvous/store_wire.h"

#include <fmt/format.h>

namespace convoy::comm {
namespace {

void put(std::string& bytes, std::uint64_t number, int width) {
  for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>((number >> (8 * i)) & 0xff));
}

void put(std::string& bytes, const std::string& text) {
  put(bytes, text.size(), 4);
  bytes += text;
}

std::uint64_t number_at(std::string_view bytes, std::size_t width) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < width; ++i) {
    number |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return number;
}

// Reads fields one after the other and remembers whether all were there.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : body_(body) {}
  std::uint64_t number(std::size_t width) {
    if (body_.size() < width) good_ = false;
    if (!good_) return 0;
    const std::uint64_t value = number_at(body_, width);
    body_.remove_prefix(width);
    return value;
  }
  std::string text() {
    const std::uint64_t length = number(4);
    if (length > body_.size()) good_ = false;
    if (!good_) return {};
    std::string value(body_.substr(0, length));
    body_.remove_prefix(length);
    return value;
  }
  bool finished() const { return good_ && body_.empty(); }

 private:
  std::string_view body_;
  bool good_ = true;
};

std::string frame(const std::string& body) {
  if (body.size() > kMaxFrameBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} bytes are too many for the store: at most {}", body.size(), kMaxFrameBytes));
  }
  std::string bytes;
  put(bytes, body);
  return bytes;
}

}  // namespace

std::string encode(const StoreRequest& request) {
  std::string body;
  put(body, static_cast<std::uint64_t>(request.verb), 1);
  put(body, request.key);
  put(body, request.value);
  put(body, static_cast<std::uint64_t>(request.number), 8);
  return frame(body);
}

std::string encode(const StoreReply& reply) {
  std::string body;
  put(body, static_cast<std::uint64_t>(reply.status), 1);
  put(body, static_cast<std::uint64_t>(reply.code), 1);
  put(body, reply.text);
  put(body, static_cast<std::uint64_t>(reply.number), 8);
  return frame(body);
}

std::optional<StoreRequest> decode_request(std::string_view body) {
  BodyReader reader(body);
  StoreRequest request;
  const std::uint64_t verb = reader.number(1);
  request.key = reader.text();
  request.value = reader.text();
  request.number = static_cast<std::int64_t>(reader.number(8));
  if (!reader.finished() || verb < 1 || verb > static_cast<std::uint64_t>(StoreVerb::kRemove)) return std::nullopt;
  request.verb = static_cast<StoreVerb>(verb);
  return request;
}

std::optional<StoreReply> decode_reply(std::string_view body) {
  BodyReader reader(body);
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
  const std::uint64_t length = number_at(bytes, kFrameHeadBytes);
  if (length > most) throw Error(ErrorCode::kCorrupt, fmt::format("a frame of {} bytes, at most {}", length, most));
  if (bytes.size() - kFrameHeadBytes < length) return std::nullopt;
  std::string body = bytes.substr(kFrameHeadBytes, length);
  bytes.erase(0, kFrameHeadBytes + length);
  return body;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const unsigned char other = b.empty() ? 0 : static_cast<unsigned char>(b[i % b.size()]);
    difference |= static_cast<unsigned char>(a[i]) ^ other;
  }
  return difference == 0;
}

}  // namespace convoy::comm

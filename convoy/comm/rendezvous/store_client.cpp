// Sends a request, waits for the answer, and puts what may go wrong in between into words.
#include "convoy/comm/rendezvous/store_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "convoy/base/text.h"

namespace convoy::comm {
namespace {

constexpr Duration kCallLimit = std::chrono::seconds(10);
constexpr Duration kRetry = std::chrono::milliseconds(20);
constexpr std::string_view kPrefix = "unix:@";

}  // namespace

socklen_t socket_name(const std::string& address, sockaddr_un& name) {
  const std::size_t length = address.size() - std::min(address.size(), kPrefix.size());
  if (!address.starts_with(kPrefix) || length == 0 || length + 1 > sizeof(name.sun_path)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is no address of a store: one looks like unix:@name", address));
  }
  name.sun_family = AF_UNIX;
  name.sun_path[0] = '\0';
  std::memcpy(name.sun_path + 1, address.data() + kPrefix.size(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

// One stream to the server.
class StoreClient::Connection {
 public:
  explicit Connection(std::string address) : address_(std::move(address)) {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) throw Error(ErrorCode::kIo, fmt::format("no socket for {}: {}", address_, std::strerror(errno)));
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns whether somebody listens.
  bool open() {
    sockaddr_un name{};
    const socklen_t length = socket_name(address_, name);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&name), length) == 0) return true;
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return false;
    throw Error(ErrorCode::kPeerLost,
                fmt::format("cannot connect to the store at {}: {}", address_, std::strerror(errno)));
  }

  // Returns the answer; nothing when the deadline is over first.
  std::optional<StoreReply> exchange(const StoreRequest& request, const Deadline& deadline) {
    const std::string frame = encode(request);
    for (std::size_t done = 0; done < frame.size();) {
      const ssize_t sent = ::send(socket_, frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) lost();
      if (sent < 0 && !wait(POLLOUT, deadline)) return std::nullopt;
    }
    while (true) {
      if (const auto body = take_frame(received_, kMaxFrameBytes)) {
        auto reply = decode_reply(*body);
        if (!reply)
          throw Error(ErrorCode::kCorrupt, fmt::format("the store at {} answers in another language", address_));
        return reply;
      }
      if (!wait(POLLIN, deadline)) return std::nullopt;
      std::array<char, 16384> buffer;
      const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) lost();
      if (got > 0) received_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  bool wait(short events, const Deadline& deadline) {
    pollfd event{socket_, events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = ::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
    return ready > 0 || !deadline.expired();
  }
  [[noreturn]] void lost() const {
    throw Error(ErrorCode::kPeerLost, fmt::format("the store at {} is gone", address_));
  }

  const std::string address_;
  int socket_ = -1;
  std::string received_;
};

StoreClient::StoreClient(const std::string& address, const std::string& token, Duration limit)
    : address_(address), token_(token) {
  auto first = connect(Deadline(system_clock(), limit), true);
  MutexLock lock(mutex_);
  idle_.push_back(std::move(first));
}

StoreClient::~StoreClient() = default;

std::unique_ptr<StoreClient::Connection> StoreClient::connect(const Deadline& deadline, bool wait_for_listener) const {
  auto connection = std::make_unique<Connection>(address_);
  while (!connection->open()) {
    if (!wait_for_listener) throw Error(ErrorCode::kPeerLost, fmt::format("the store at {} is gone", address_));
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("no store listens at {} (tried for {})", address_, format_duration(deadline.limit())));
    }
    system_clock().sleep_for(std::min(kRetry, deadline.remaining()));
  }
  StoreRequest hello;
  hello.key = token_;
  const auto reply = connection->exchange(hello, deadline);
  if (!reply) {
    throw Error(ErrorCode::kTimeout,
                fmt::format("the store at {} does not answer within {}", address_, format_duration(deadline.limit())));
  }
  if (reply->status != StoreStatus::kOk) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the store at {} refuses the job token", address_));
  }
  return connection;
}

StoreReply StoreClient::call(StoreVerb verb, const std::string& key, const std::string& value, std::int64_t number,
                             Duration limit) {
  const Deadline deadline(system_clock(), limit);
  std::unique_ptr<Connection> connection;
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (connection == nullptr) connection = connect(Deadline(system_clock(), kCallLimit), false);
  const auto reply = connection->exchange(StoreRequest{verb, key, value, number}, deadline);
  if (!reply) {
    // The connection is closed with its open request: an answer that comes later is nobody's.
    if (verb == StoreVerb::kGet) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("nobody set '{}' in the store within {}", key, format_duration(limit)));
    }
    throw Error(ErrorCode::kTimeout, fmt::format("the store at {} does not answer for '{}' within {}", address_, key,
                                                 format_duration(limit)));
  }
  {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  if (reply->status == StoreStatus::kFailed) throw Error(reply->code, reply->text);
  return *reply;
}

void StoreClient::set(const std::string& key, const std::string& value) {
  call(StoreVerb::kSet, key, value, 0, kCallLimit);
}

std::string StoreClient::get(const std::string& key, Duration limit) {
  return call(StoreVerb::kGet, key, "", 0, limit).text;
}

std::optional<std::string> StoreClient::try_get(const std::string& key) {
  StoreReply reply = call(StoreVerb::kTryGet, key, "", 0, kCallLimit);
  if (reply.status == StoreStatus::kAbsent) return std::nullopt;
  return std::move(reply.text);
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t delta) {
  return call(StoreVerb::kAdd, key, "", delta, kCallLimit).number;
}

void StoreClient::remove(const std::string& key) { call(StoreVerb::kRemove, key, "", 0, kCallLimit); }

}  // namespace convoy::comm

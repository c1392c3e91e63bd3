// Sends a request, waits for the answer, and puts what may go wrong in between into words.
#include "convoy/comm/rendezvous/store_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/base/text.h"
#include "convoy/comm/rendezvous/sockets.h"

namespace convoy::comm {
namespace {

constexpr Duration kCallLimit = std::chrono::seconds(10);
constexpr Duration kRetry = std::chrono::milliseconds(20);
// How long each address of a name gets; doubled in each round.
constexpr Duration kFirstPatience = std::chrono::milliseconds(700);

}  // namespace

// One stream to the server.
class StoreClient::Connection {
 public:
  Connection(std::string address, Descriptor socket) : address_(std::move(address)), socket_(std::move(socket)) {}

  // Returns the answer; nothing when the deadline is over first.
  std::optional<StoreReply> exchange(const StoreRequest& request, const Deadline& deadline) {
    const std::string frame = encode(request);
    for (std::size_t done = 0; done < frame.size();) {
      const ssize_t sent = ::send(socket_.get(), frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
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
      const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) lost();
      if (got > 0) received_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  bool wait(short events, const Deadline& deadline) {
    pollfd event{socket_.get(), events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = ::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
    return ready > 0 || !deadline.expired();
  }
  [[noreturn]] void lost() const {
    throw Error(ErrorCode::kPeerLost, fmt::format("the store at {} is gone", address_));
  }

  const std::string address_;
  const Descriptor socket_;
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
  std::string why;
  for (Duration patience = kFirstPatience;; patience *= 2) {
    Descriptor socket = try_connect(address_, std::min(patience, deadline.remaining()), why);
    if (socket.get() >= 0) {
      try {
        auto connection = std::make_unique<Connection>(address_, std::move(socket));
        greet(*connection, deadline);
        return connection;
      } catch (const Error& error) {
        // A server that has no room for so many who greet at once closes a connection: it is worth another try.
        if (error.code() != ErrorCode::kPeerLost || !wait_for_listener) throw;
        why = error.message();
      }
    } else if (!wait_for_listener) {
      throw Error(ErrorCode::kPeerLost, fmt::format("the store at {} is gone", address_));
    }
    if (deadline.expired()) {
      throw Error(ErrorCode::kTimeout, fmt::format("no store listens at {} (tried for {}; {})", address_,
                                                   format_duration(deadline.limit()), why));
    }
    system_clock().sleep_for(std::min(kRetry, deadline.remaining()));
  }
}

// Shows that this side knows the token, and believes the other side only when it shows the same.
void StoreClient::greet(Connection& connection, const Deadline& deadline) const {
  const auto ask = [&](StoreVerb verb, const std::string& text) {
    auto reply = connection.exchange(StoreRequest{verb, text, "", 0}, deadline);
    if (!reply) {
      throw Error(ErrorCode::kTimeout, fmt::format("the store at {} does not answer within {}", address_,
                                                   format_duration(deadline.limit())));
    }
    return *std::move(reply);
  };
  const std::string nonce = make_nonce();
  const std::string server_nonce = ask(StoreVerb::kHello, nonce).text;
  const StoreReply welcome = ask(StoreVerb::kProof, proof_of(StoreSide::kClient, token_, nonce, server_nonce));
  if (welcome.status != StoreStatus::kOk) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the store at {} refuses the job token", address_));
  }
  if (!equal_in_constant_time(welcome.text, proof_of(StoreSide::kServer, token_, nonce, server_nonce))) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("who listens at {} does not know the job token: it is another job's store", address_));
  }
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

// One thread, one poll loop: accepts, reads frames, answers, and answers waiting gets once their key is set.
#include "convoy/comm/rendezvous/store_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_wire.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kMostConnections = 4096;
constexpr std::size_t kMostUnsent = std::size_t{8} << 20;
constexpr Duration kHelloLimit = std::chrono::seconds(5);
// How soon a value that the serving process itself sets reaches waiting clients.
constexpr int kTickMs = 50;

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  const int number_;
};

struct Connection {
  explicit Connection(int number) : socket(number), opened(system_clock().now()) {}
  Descriptor socket;
  TimePoint opened;
  bool let_in = false;
  bool closing = false;  // close once everything is sent
  bool closed = false;
  std::string received;
  std::string unsent;
  std::optional<std::string> wanted;  // the key of a get that is not answered
};

int listen_on(const std::string& address) {
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un name{};
  const socklen_t length = socket_name(address, name);
  if (number >= 0 && ::bind(number, reinterpret_cast<const sockaddr*>(&name), length) == 0 &&
      ::listen(number, SOMAXCONN) == 0) {
    return number;
  }
  const int reason = errno;
  if (number >= 0) ::close(number);
  throw Error(ErrorCode::kIo, fmt::format("the store cannot listen on {}: {}", address, std::strerror(reason)));
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace

std::string make_job_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(ErrorCode::kIo, "the kernel gives no random numbers");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

struct StoreServer::Server {
  explicit Server(const std::string& chosen_token)
      : token(chosen_token.empty() ? make_job_token() : chosen_token),
        address(fmt::format("unix:@convoy-{}-{}", ::getpid(), make_job_token().substr(0, 16))),
        listener(listen_on(address)),
        stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread([this] { run(); }) {}
  ~Server() {
    const std::uint64_t one = 1;
    stopping = true;
    if (::write(stop.get(), &one, sizeof(one)) < 0) log_debug("the store's thread is told to end by its tick alone");
    thread.join();
  }

  void run();
  void accept_all();
  void serve(Connection& connection, short events);
  void read_from(Connection& connection);
  void send_to(Connection& connection);
  void handle(Connection& connection, const std::string& body);
  StoreReply answer(const StoreRequest& request);
  void reply(Connection& connection, const StoreReply& reply) { connection.unsent += encode(reply); }
  void answer_waiting();
  void drop_closed();

  const std::string token;
  const std::string address;
  MemoryStore store;
  Descriptor listener;
  Descriptor stop;
  std::atomic<bool> stopping{false};
  std::atomic<int> clients{0};
  std::list<Connection> connections;  // the thread's alone
  std::jthread thread;
};

void StoreServer::Server::run() {
  ::pthread_setname_np(::pthread_self(), "convoy-store");
  std::vector<pollfd> events;
  while (!stopping) {
    events.assign({pollfd{stop.get(), POLLIN, 0}, pollfd{listener.get(), POLLIN, 0}});
    bool waiting = false;
    for (const Connection& connection : connections) {
      const short wanted = static_cast<short>(POLLIN | (connection.unsent.empty() ? 0 : POLLOUT));
      events.push_back(pollfd{connection.socket.get(), wanted, 0});
      waiting = waiting || connection.wanted || !connection.let_in;
    }
    ::poll(events.data(), events.size(), waiting ? kTickMs : 1000);
    std::size_t at = 2;
    for (Connection& connection : connections) serve(connection, events[at++].revents);
    if ((events[1].revents & POLLIN) != 0) accept_all();
    answer_waiting();
    drop_closed();
  }
  connections.clear();
}

void StoreServer::Server::accept_all() {
  while (true) {
    const int number = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0) return;
    if (connections.size() >= kMostConnections || !same_user(number)) {
      ::close(number);
      continue;
    }
    connections.emplace_back(number);
  }
}

void StoreServer::Server::serve(Connection& connection, short events) {
  try {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(connection);
    send_to(connection);
  } catch (const std::exception& error) {
    log_debug("the store closes a connection: {}", error.what());
    connection.closed = true;
  }
  if (!connection.let_in && system_clock().now() - connection.opened > kHelloLimit) connection.closed = true;
}

void StoreServer::Server::read_from(Connection& connection) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    connection.closed = true;
    return;
  }
  if (got > 0) connection.received.append(buffer.data(), static_cast<std::size_t>(got));
  while (!connection.closed && !connection.closing) {
    const auto body = take_frame(connection.received, connection.let_in ? kMaxFrameBytes : kMaxHelloBytes);
    if (!body) return;
    handle(connection, *body);
  }
}

void StoreServer::Server::handle(Connection& connection, const std::string& body) {
  const auto request = decode_request(body);
  // A client has one open request: another one before the answer is as malformed as bytes that say nothing.
  if (!request || connection.wanted || (request->verb == StoreVerb::kHello) == connection.let_in) {
    connection.closed = true;
    return;
  }
  if (request->verb == StoreVerb::kHello) {
    StoreReply hello;
    connection.let_in = equal_in_constant_time(request->key, token);
    connection.closing = !connection.let_in;
    hello.status = connection.let_in ? StoreStatus::kOk : StoreStatus::kRefused;
    if (connection.let_in) ++clients;
    return reply(connection, hello);
  }
  if (request->verb == StoreVerb::kGet) {
    connection.wanted = request->key;
    return;
  }
  reply(connection, answer(*request));
}

StoreReply StoreServer::Server::answer(const StoreRequest& request) {
  StoreReply reply;
  try {
    switch (request.verb) {
      case StoreVerb::kSet: store.set(request.key, request.value); break;
      case StoreVerb::kAdd: reply.number = store.add(request.key, request.number); break;
      case StoreVerb::kRemove: store.remove(request.key); break;
      case StoreVerb::kTryGet: {
        const auto value = store.try_get(request.key);
        reply.status = value ? StoreStatus::kOk : StoreStatus::kAbsent;
        reply.text = value.value_or("");
        break;
      }
      case StoreVerb::kHello:
      case StoreVerb::kGet: reply.status = StoreStatus::kRefused; break;
    }
  } catch (const Error& error) {
    reply.status = StoreStatus::kFailed;
    reply.code = error.code();
    reply.text = error.message();
  }
  return reply;
}

void StoreServer::Server::answer_waiting() {
  for (Connection& connection : connections) {
    if (!connection.wanted || connection.closed) continue;
    auto value = store.try_get(*connection.wanted);
    if (!value) continue;
    StoreReply found;
    found.text = std::move(*value);
    connection.wanted.reset();
    reply(connection, found);
    serve(connection, 0);
  }
}

void StoreServer::Server::send_to(Connection& connection) {
  while (!connection.unsent.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.unsent.data(), connection.unsent.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) {
      connection.closed = connection.unsent.size() > kMostUnsent || (errno != EAGAIN && errno != EINTR);
      return;
    }
    connection.unsent.erase(0, static_cast<std::size_t>(sent));
  }
  if (connection.closing) connection.closed = true;
}

void StoreServer::Server::drop_closed() {
  connections.remove_if([this](const Connection& connection) {
    if (connection.closed && connection.let_in) --clients;
    return connection.closed;
  });
}

StoreServer::StoreServer(const std::string& token) : server_(std::make_unique<Server>(token)) {}
StoreServer::~StoreServer() = default;
const std::string& StoreServer::address() const { return server_->address; }
const std::string& StoreServer::token() const { return server_->token; }
Store& StoreServer::store() { return server_->store; }
int StoreServer::clients() const { return server_->clients; }

}  // namespace convoy::comm

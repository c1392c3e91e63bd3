// One thread, one poll loop: accepts, reads, answers, and answers waiting gets once their key is set.
#include "convoy/comm/rendezvous/store_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/comm/rendezvous/sockets.h"
#include "convoy/comm/rendezvous/store_session.h"

namespace convoy::comm {
namespace {

constexpr std::size_t kMostConnections = 4096;
// Connections that have not shown the token yet.
constexpr std::ptrdiff_t kMostStrangers = 256;
constexpr std::size_t kMostUnsent = std::size_t{8} << 20;
constexpr Duration kHelloLimit = std::chrono::seconds(5);
// How soon a value that the serving process itself sets reaches waiting clients.
constexpr int kTickMs = 50;

struct Connection {
  Connection(Descriptor accepted, Store& store, const std::string& token)
      : socket(std::move(accepted)), opened(system_clock().now()), session(store, token) {}
  Descriptor socket;
  TimePoint opened;
  StoreSession session;
  bool closed = false;
};

std::string random_address() { return fmt::format("unix:@convoy-{}-{}", ::getpid(), make_job_token().substr(0, 16)); }

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
  Server(const std::string& chosen_token, const std::string& where)
      : token(chosen_token.empty() ? make_job_token() : chosen_token),
        listeners(listen_at(where.empty() ? random_address() : where)),
        stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread([this] { run(); }) {}
  ~Server() {
    const std::uint64_t one = 1;
    stopping = true;
    if (::write(stop.get(), &one, sizeof(one)) < 0) log_debug("the store's thread is told to end by its tick alone");
    thread.join();
  }

  void run();
  void accept_all(int listener);
  void drop_oldest_stranger();
  void serve(Connection& connection, short events);
  void read_from(Connection& connection);
  void send_to(Connection& connection);
  void answer_waiting();
  void drop_closed();

  const std::string token;
  const Listeners listeners;
  MemoryStore store;
  const Descriptor stop;
  std::atomic<bool> stopping{false};
  std::atomic<int> clients{0};
  std::list<Connection> connections;  // the thread's alone
  std::jthread thread;
};

void StoreServer::Server::run() {
  ::pthread_setname_np(::pthread_self(), "convoy-store");
  std::vector<pollfd> events;
  while (!stopping) {
    events.assign({pollfd{stop.get(), POLLIN, 0}});
    for (const Descriptor& socket : listeners.sockets) events.push_back(pollfd{socket.get(), POLLIN, 0});
    bool waiting = false;
    for (Connection& connection : connections) {
      const short wanted = static_cast<short>(POLLIN | (connection.session.unsent().empty() ? 0 : POLLOUT));
      events.push_back(pollfd{connection.socket.get(), wanted, 0});
      waiting = waiting || connection.session.waiting() || !connection.session.let_in();
    }
    ::poll(events.data(), events.size(), waiting ? kTickMs : 1000);
    std::size_t at = 1 + listeners.sockets.size();
    for (Connection& connection : connections) serve(connection, events[at++].revents);
    for (std::size_t i = 0; i < listeners.sockets.size(); ++i) {
      if ((events[1 + i].revents & POLLIN) != 0) accept_all(listeners.sockets[i].get());
    }
    answer_waiting();
    drop_closed();
    clients = static_cast<int>(std::count_if(connections.begin(), connections.end(),
                                             [](const Connection& one) { return one.session.let_in(); }));
  }
  connections.clear();
}

void StoreServer::Server::accept_all(int listener) {
  while (true) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return;
    if (connections.size() >= kMostConnections || (listeners.local && !same_user(socket.get()))) continue;
    drop_oldest_stranger();
    if (!listeners.local) tune_stream(socket.get());
    connections.emplace_back(std::move(socket), store, token);
  }
}

// Strangers who say nothing must not keep ranks out: of too many, the oldest goes. A rank that is pushed out so tries
// again.
void StoreServer::Server::drop_oldest_stranger() {
  const auto stranger = [](const Connection& one) { return !one.closed && !one.session.let_in(); };
  if (std::count_if(connections.begin(), connections.end(), stranger) < kMostStrangers) return;
  std::find_if(connections.begin(), connections.end(), stranger)->closed = true;
}

void StoreServer::Server::serve(Connection& connection, short events) {
  try {
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(connection);
    send_to(connection);
  } catch (const std::exception& error) {
    log_debug("the store closes a connection: {}", error.what());
    connection.closed = true;
  }
  if (!connection.session.let_in() && system_clock().now() - connection.opened > kHelloLimit) connection.closed = true;
}

void StoreServer::Server::read_from(Connection& connection) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    connection.closed = true;
    return;
  }
  if (got > 0) connection.session.feed(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
}

void StoreServer::Server::answer_waiting() {
  for (Connection& connection : connections) {
    if (connection.closed || !connection.session.waiting()) continue;
    connection.session.answer_waiting();
    serve(connection, 0);
  }
}

void StoreServer::Server::send_to(Connection& connection) {
  std::string& unsent = connection.session.unsent();
  while (!unsent.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) {
      connection.closed = unsent.size() > kMostUnsent || (errno != EAGAIN && errno != EINTR);
      return;
    }
    unsent.erase(0, static_cast<std::size_t>(sent));
  }
  if (connection.session.closed()) connection.closed = true;
}

void StoreServer::Server::drop_closed() {
  connections.remove_if([](const Connection& connection) { return connection.closed; });
}

StoreServer::StoreServer(const std::string& token, const std::string& where)
    : server_(std::make_unique<Server>(token, where)) {}
StoreServer::~StoreServer() = default;
const std::string& StoreServer::address() const { return server_->listeners.address; }
const std::string& StoreServer::token() const { return server_->token; }
Store& StoreServer::store() { return server_->store; }
int StoreServer::clients() const { return server_->clients; }

}  // namespace convoy::comm

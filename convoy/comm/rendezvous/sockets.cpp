// Unix-domain and TCP sockets.
#include "convoy/comm/rendezvous/sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/comm/rendezvous/host_port.h"

namespace convoy::comm {
namespace {

constexpr std::string_view kUnixPrefix = "unix:@";
constexpr int kMode = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// A numeric address and a port.
struct Place {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* address() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

[[noreturn]] void refuse_form(const std::string& address) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no address of a store: one looks like unix:@name or tcp://host:port", address));
}

void add_addresses(const std::string& host, int port, std::vector<Place>& places) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failed != 0) {
    throw Error(failed == EAI_AGAIN ? ErrorCode::kIo : ErrorCode::kInvalidArgument,
                fmt::format("the host '{}' is not known: {}", host, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    Place& place = places.emplace_back();
    std::memcpy(&place.storage, at->ai_addr, at->ai_addrlen);
    place.length = at->ai_addrlen;
  }
}

// Returns all addresses of a host. "localhost" has both loopback addresses, whatever the host's tables say (RFC 6761).
std::vector<Place> resolve(const std::string& host, int port) {
  std::vector<Place> places;
  if (host == "localhost") {
    add_addresses("127.0.0.1", port, places);
    add_addresses("::1", port, places);
  } else {
    add_addresses(host, port, places);
  }
  return places;
}

std::string numeric(const Place& place) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(place.address(), place.length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an address without a name";
  }
  return HostPort::parse(host.data(), port.data()).str();
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof(value));
}

int port_of(int socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

void set_port(sockaddr* address, int port) {
  auto& field = address->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                               : reinterpret_cast<sockaddr_in*>(address)->sin_port;
  field = htons(static_cast<std::uint16_t>(port));
}

// Returns a listening socket, or -1 with errno.
Descriptor listen_one(const Place& place) {
  Descriptor socket(::socket(place.family(), kMode, 0));
  if (socket.get() < 0) return socket;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (place.family() == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(socket.get(), place.address(), place.length) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) return socket;
  const int reason = errno;
  socket = Descriptor();
  errno = reason;
  return socket;
}

Listeners listen_tcp(HostPort where) {
  const bool any_port = where.port == 0;
  Listeners listeners;
  std::string why = "the host has no address";
  for (Place& place : resolve(where.host, where.port)) {
    set_port(place.address(), where.port);
    Descriptor socket = listen_one(place);
    if (socket.get() < 0) {
      const int reason = errno;
      why = fmt::format("{}: {}", numeric(place), std::strerror(reason));
      // Another family may be missing on this host; an address in use is somebody else's.
      if (reason == EADDRNOTAVAIL || reason == EAFNOSUPPORT) continue;
      if (any_port && !listeners.sockets.empty()) continue;  // free in one family, taken in another: one will do
      throw Error(ErrorCode::kIo, fmt::format("the store cannot listen on {}", why));
    }
    if (where.port == 0) where.port = port_of(socket.get());
    listeners.sockets.push_back(std::move(socket));
  }
  if (listeners.sockets.empty()) throw Error(ErrorCode::kIo, fmt::format("the store cannot listen on {}", why));
  listeners.address = fmt::format("{}{}", kTcpPrefix, where.str());
  return listeners;
}

Listeners listen_unix(const std::string& address) {
  sockaddr_un name{};
  const socklen_t length = socket_name(address, name);
  Descriptor socket(::socket(AF_UNIX, kMode, 0));
  if (socket.get() < 0 || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("the store cannot listen on {}: {}", address, std::strerror(errno)));
  }
  Listeners listeners;
  listeners.sockets.push_back(std::move(socket));
  listeners.address = address;
  listeners.local = true;
  return listeners;
}

// A connection to a port that nobody listens at may be given that very port as its own, and then meets itself.
bool met_itself(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof(own);
  socklen_t peer_length = sizeof(peer);
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 && own_length == peer_length &&
         std::memcmp(&own, &peer, own_length) == 0;
}

// Waits for a connection that is under way; returns 0 or why it failed.
int finish_connect(int socket, Duration patience) {
  pollfd event{socket, POLLOUT, 0};
  const Deadline deadline(system_clock(), patience);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    if (::poll(&event, 1, static_cast<int>(left)) > 0) break;
    if (deadline.expired()) return ETIMEDOUT;
  }
  int reason = 0;
  socklen_t length = sizeof(reason);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &reason, &length) == 0 ? reason : errno;
}

}  // namespace

void tune_stream(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 8);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 4);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

socklen_t socket_name(const std::string& address, sockaddr_un& name) {
  const std::size_t length = address.size() - std::min(address.size(), kUnixPrefix.size());
  if (!address.starts_with(kUnixPrefix) || length == 0 || length + 1 > sizeof(name.sun_path)) refuse_form(address);
  name.sun_family = AF_UNIX;
  name.sun_path[0] = '\0';
  std::memcpy(name.sun_path + 1, address.data() + kUnixPrefix.size(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

Listeners listen_at(const std::string& address) {
  if (!address.starts_with(kTcpPrefix)) return listen_unix(address);
  return listen_tcp(HostPort::parse(std::string_view(address).substr(kTcpPrefix.size())));
}

Descriptor try_connect(const std::string& address, Duration patience, std::string& why) {
  if (!address.starts_with(kTcpPrefix)) {
    sockaddr_un name{};
    const socklen_t length = socket_name(address, name);
    Descriptor socket(::socket(AF_UNIX, kMode, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) == 0) return socket;
    why = std::strerror(errno);
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return Descriptor();
    throw Error(ErrorCode::kPeerLost, fmt::format("cannot connect to the store at {}: {}", address, why));
  }
  const HostPort where = HostPort::parse(std::string_view(address).substr(kTcpPrefix.size()));
  why.clear();
  for (const Place& place : resolve(where.host, where.port)) {
    Descriptor socket(::socket(place.family(), kMode, 0));
    int reason = errno;
    if (socket.get() >= 0) {
      reason = ::connect(socket.get(), place.address(), place.length) == 0 ? 0 : errno;
      if (reason == EINPROGRESS) reason = finish_connect(socket.get(), patience);
      if (reason == 0 && met_itself(socket.get())) reason = ECONNREFUSED;
      if (reason == 0) {
        tune_stream(socket.get());
        return socket;
      }
    }
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", numeric(place), std::strerror(reason));
  }
  return Descriptor();
}

std::string local_address_towards(const std::string& host) {
  constexpr int kAnyPort = 9;  // a datagram socket that connects sends nothing
  const std::vector<Place> places = resolve(host, kAnyPort);
  const auto ipv4 =
      std::find_if(places.begin(), places.end(), [](const Place& one) { return one.family() == AF_INET; });
  const Place& chosen = ipv4 == places.end() ? places.front() : *ipv4;
  const Descriptor socket(::socket(chosen.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  std::array<char, NI_MAXHOST> text{};
  if (::connect(socket.get(), chosen.address(), chosen.length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&name), length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("there is no way to the host '{}': {}", host, std::strerror(errno)));
  }
  return text.data();
}

}  // namespace convoy::comm

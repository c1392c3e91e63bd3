// Stream sockets for the store: listening and connecting by the store's address, "unix:@name" or "tcp://host:port".
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "convoy/base/clock.h"

namespace convoy::comm {

/// Owns a descriptor.
class Descriptor {
 public:
  /// Takes a descriptor; -1 is none.
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  /// Returns its number; -1 when there is none.
  int get() const { return number_; }

 private:
  int number_;
};

/// Sets a TCP connection up for short messages; a host that is gone without a word is noticed within about 20 s.
void tune_stream(int socket);

/// Fills in the socket name of an address "unix:@name" and returns its length.
/// Errors:     kInvalidArgument naming the address
socklen_t socket_name(const std::string& address, sockaddr_un& name);

/// Sockets that listen, and where.
struct Listeners {
  /// More than one where a host name has several addresses. None blocks.
  std::vector<Descriptor> sockets;
  /// The address with the port that was taken.
  std::string address;
  /// Whether peers are checked by the kernel (unix-domain) and not only by the token.
  bool local = false;
};

/// Listens at an address. A port that was used just before may be taken again; one that is in use may not.
/// Errors:     kIo naming address and port; kInvalidArgument for an address of another form or an unknown host
Listeners listen_at(const std::string& address);

/// Connects to an address, trying all addresses of a name in turn; returns nothing (-1) and says why when nobody
/// listens there now.
/// Blocking:   at most `patience` for each address of a name
/// Errors:     kInvalidArgument for an address of another form or an unknown host; kPeerLost for what cannot pass
Descriptor try_connect(const std::string& address, Duration patience, std::string& why);

/// Returns the numeric address of this host from which packets to a host go out; IPv4 where the name has both.
/// Errors:     kInvalidArgument for an unknown host; kIo when there is no way to it
std::string local_address_towards(const std::string& host);

}  // namespace convoy::comm

// One Gloo mesh over one network interface: a TCP connection to each peer, and buffers that go over it.
//
// All of Gloo's own types stay in gloo_link.cpp; where Gloo is not installed, gloo_link_unavailable.cpp takes its place.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "convoy/base/clock.h"

namespace convoy::comm {

/// Keeps SIGPIPE away from the calling thread while it lives: Gloo writes to sockets that a peer may have closed.
class SigpipeGuard {
 public:
  SigpipeGuard();
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  bool blocked_here_ = false;
};

/// Memory that is sent to, or filled by, one peer of a link.
/// Threads:    any; one operation at a time
/// Errors:     kPeerLost when the connection to the peer is gone
class LinkBuffer {
 public:
  virtual ~LinkBuffer() = default;
  /// Starts to send the first bytes; the memory is the buffer's until wait_sent returns.
  /// Blocking:   never: what the socket does not take now is sent by the link's thread
  virtual void send(int peer, std::size_t bytes) = 0;
  /// Posts the memory for the next message of a peer. Messages fill what is posted in the order of posting.
  virtual void receive(int peer) = 0;
  /// Waits for a message; false when abort() ended the wait.
  /// Blocking:   until a message, abort() or the end of the connection
  virtual bool wait_received() = 0;
  /// Waits until the memory may be used again.
  virtual void wait_sent() = 0;
  /// Ends a wait, now or the next one.
  virtual void abort() = 0;
};

/// One interface's connections to all peers of a group.
/// Threads:    as said; owns one thread, which looks around every 10 ms even when nothing happens (Gloo's event loop)
class Link {
 public:
  virtual ~Link() = default;
  /// Returns the address at which one peer shall connect, as Gloo writes it.
  virtual std::string address(int peer) const = 0;
  /// Connects to what the peer's address(this rank) said; the side with the lower address waits for the other.
  /// Errors:     kPeerLost naming the address when it is refused or nobody comes within the limit of make_link
  virtual void connect(int peer, const std::string& address) = 0;
  /// Returns a buffer over memory.
  /// Ownership:  borrows the memory; the buffer must go before the link
  virtual std::unique_ptr<LinkBuffer> buffer(void* memory, std::size_t bytes) = 0;
  /// Closes all connections at once; what is not sent is dropped.
  virtual void close() = 0;
};

/// Returns whether this build has Gloo.
bool has_gloo();

/// Opens a listening socket for each peer at a numeric address ("10.0.0.1", "fe80::1%eth0").
/// Errors:     kNotSupported where this build has no Gloo; kInvalidArgument naming an address that is not this host's
std::unique_ptr<Link> make_link(const std::string& host, int rank, int size, Duration connect_limit);

}  // namespace convoy::comm

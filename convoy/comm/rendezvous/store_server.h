// The store server: the dictionary of a job, behind a socket that only holders of its token may use.
#pragma once

#include <memory>
#include <string>

#include "convoy/comm/store.h"

namespace convoy::comm {

/// Returns 128 random bits from the kernel as 32 hexadecimal digits: a job's token.
std::string make_job_token();

/// Serves a store from one thread, on an abstract unix-domain socket (nothing in the file system) or over TCP. A wrong
/// token, another user (on a unix-domain socket), malformed bytes or silence before the token is shown close that
/// connection and change nothing else.
/// Threads:    any
/// Ownership:  destroying it ends all waits of its clients at once (kPeerLost)
class StoreServer {
 public:
  /// Listens at `where`: "tcp://HOST:PORT" (port 0 takes any free one; only that host's addresses), "unix:@NAME", or ""
  /// for a unix-domain socket with a random name. An empty token takes a new one.
  /// Errors:     kIo naming address and port when it cannot listen there
  explicit StoreServer(const std::string& token = "", const std::string& where = "");
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// Returns where clients connect, for CONVOY_STORE: "unix:@name", "tcp://127.0.0.1:29500".
  const std::string& address() const;
  /// Returns what clients must know, for CONVOY_JOB_TOKEN.
  const std::string& token() const;
  /// Returns the dictionary itself, for the process that serves it.
  Store& store();
  /// Returns how many clients are let in now.
  int clients() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace convoy::comm

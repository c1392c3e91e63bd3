// The store server: the dictionary of a job on one host, behind a socket that only holders of its token may use.
#pragma once

#include <memory>
#include <string>

#include "convoy/comm/store.h"

namespace convoy::comm {

/// Returns 128 random bits from the kernel as 32 hexadecimal digits: a job's token.
std::string make_job_token();

/// Serves a store on an abstract unix-domain socket (nothing in the file system) from one thread. A wrong token,
/// another user or malformed bytes close that connection and change nothing else.
/// Threads:    any
/// Ownership:  destroying it ends all waits of its clients at once (kPeerLost)
class StoreServer {
 public:
  /// Listens under a random name; an empty token takes a new one.
  /// Errors:     kIo when there is no socket to be had
  explicit StoreServer(const std::string& token = "");
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// Returns where clients connect, for CONVOY_STORE: "unix:@name".
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

// The store client: a Store on the other side of a socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/comm/rendezvous/store_wire.h"
#include "convoy/comm/store.h"

namespace convoy::comm {

/// Talks to a StoreServer. Each thread that is inside a call has a connection to itself; idle ones are kept for the
/// next.
/// Threads:    any
class StoreClient final : public Store {
 public:
  /// Connects to "unix:@name" or "tcp://host:port", trying again until the limit while nobody listens. Of a name with
  /// several addresses all are tried.
  /// Errors:     kInvalidArgument for an address of another form or a wrong token; kTimeout when nobody listens;
  ///             kPeerLost when the server goes away. All name the address
  StoreClient(const std::string& address, const std::string& token, Duration limit);
  ~StoreClient() override;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Duration limit) override;
  std::optional<std::string> try_get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t delta) override;
  void remove(const std::string& key) override;

 private:
  class Connection;

  std::unique_ptr<Connection> connect(const Deadline& deadline, bool wait_for_listener) const;
  void greet(Connection& connection, const Deadline& deadline) const;
  StoreReply call(StoreVerb verb, const std::string& key, const std::string& value, std::int64_t number,
                  Duration limit);

  const std::string address_;
  const std::string token_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ CONVOY_GUARDED_BY(mutex_);
};

}  // namespace convoy::comm

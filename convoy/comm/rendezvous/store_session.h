// One client's session with a store server: bytes in, bytes out, no socket.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "convoy/comm/rendezvous/store_wire.h"
#include "convoy/comm/store.h"

namespace convoy::comm {

/// What a server knows of a client. Malformed bytes close the session and change nothing else.
/// Threads:    one
class StoreSession {
 public:
  /// Borrows the dictionary; clients must know the token.
  StoreSession(Store& store, std::string token) : store_(store), token_(std::move(token)) {}

  /// Takes bytes from the client and answers every whole request.
  void feed(std::string_view bytes);
  /// Answers a get whose key is set by now.
  void answer_waiting();
  /// Returns the bytes to send; the caller erases from the front what it has sent.
  std::string& unsent() { return unsent_; }
  /// Returns whether the client has shown that it knows the token.
  bool let_in() const { return stage_ == Stage::kIn; }
  /// Returns whether a get waits for its key.
  bool waiting() const { return wanted_.has_value(); }
  /// Returns whether the session is over: now, or once everything is sent.
  bool closed() const { return stage_ == Stage::kClosed || (stage_ == Stage::kRefused && unsent_.empty()); }

 private:
  enum class Stage { kNew, kChallenged, kIn, kRefused, kClosed };

  void handle(const std::string& body);
  void greet(const StoreRequest& request);
  void check_proof(const StoreRequest& request);
  StoreReply answer(const StoreRequest& request);
  void reply(const StoreReply& reply) { unsent_ += encode(reply); }

  Store& store_;
  const std::string token_;
  Stage stage_ = Stage::kNew;
  std::string client_nonce_;
  std::string server_nonce_;
  std::string received_;
  std::string unsent_;
  std::optional<std::string> wanted_;
};

}  // namespace convoy::comm

// A session's greeting and its requests.
#include "convoy/comm/rendezvous/store_session.h"

#include <utility>

namespace convoy::comm {
namespace {

constexpr std::size_t kLeastNonce = 16;

}  // namespace

void StoreSession::feed(std::string_view bytes) {
  received_ += bytes;
  try {
    while (stage_ != Stage::kClosed && stage_ != Stage::kRefused) {
      const auto body = take_frame(received_, let_in() ? kMaxFrameBytes : kMaxHelloBytes);
      if (!body) return;
      handle(*body);
    }
  } catch (const Error&) {
    stage_ = Stage::kClosed;
  }
}

void StoreSession::handle(const std::string& body) {
  const auto request = decode_request(body);
  // A client has one open request: another one before the answer is as malformed as bytes that say nothing.
  if (!request || wanted_) {
    stage_ = Stage::kClosed;
  } else if (stage_ == Stage::kNew) {
    greet(*request);
  } else if (stage_ == Stage::kChallenged) {
    check_proof(*request);
  } else if (request->verb == StoreVerb::kGet) {
    wanted_ = request->key;
    answer_waiting();
  } else if (request->verb == StoreVerb::kHello || request->verb == StoreVerb::kProof) {
    stage_ = Stage::kClosed;
  } else {
    reply(answer(*request));
  }
}

void StoreSession::greet(const StoreRequest& request) {
  if (request.verb != StoreVerb::kHello || request.key.size() < kLeastNonce) {
    stage_ = Stage::kClosed;
    return;
  }
  client_nonce_ = request.key;
  server_nonce_ = make_nonce();
  StoreReply challenge;
  challenge.text = server_nonce_;
  stage_ = Stage::kChallenged;
  reply(challenge);
}

void StoreSession::check_proof(const StoreRequest& request) {
  const std::string wanted = proof_of(StoreSide::kClient, token_, client_nonce_, server_nonce_);
  const bool right = request.verb == StoreVerb::kProof && equal_in_constant_time(request.key, wanted);
  stage_ = right ? Stage::kIn : Stage::kRefused;
  StoreReply welcome;
  welcome.status = right ? StoreStatus::kOk : StoreStatus::kRefused;
  if (right) welcome.text = proof_of(StoreSide::kServer, token_, client_nonce_, server_nonce_);
  reply(welcome);
}

StoreReply StoreSession::answer(const StoreRequest& request) {
  StoreReply reply;
  try {
    switch (request.verb) {
      case StoreVerb::kSet: store_.set(request.key, request.value); break;
      case StoreVerb::kAdd: reply.number = store_.add(request.key, request.number); break;
      case StoreVerb::kRemove: store_.remove(request.key); break;
      case StoreVerb::kTryGet: {
        const auto value = store_.try_get(request.key);
        reply.status = value ? StoreStatus::kOk : StoreStatus::kAbsent;
        reply.text = value.value_or("");
        break;
      }
      case StoreVerb::kHello:
      case StoreVerb::kProof:
      case StoreVerb::kGet: reply.status = StoreStatus::kRefused; break;
    }
  } catch (const Error& error) {
    reply.status = StoreStatus::kFailed;
    reply.code = error.code();
    reply.text = error.message();
  }
  return reply;
}

void StoreSession::answer_waiting() {
  if (!wanted_ || closed()) return;
  auto value = store_.try_get(*wanted_);
  if (!value) return;
  StoreReply found;
  found.text = std::move(*value);
  wanted_.reset();
  reply(found);
}

}  // namespace convoy::comm

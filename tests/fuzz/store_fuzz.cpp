// Fuzzes what comes over sockets: the first byte chooses between store messages, a session of a stranger, a session of
// a client that was let in, control messages between ranks, introductions, and addresses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "convoy/base/error.h"
#include "convoy/comm/gloo/introduction.h"
#include "convoy/comm/gloo/wire.h"
#include "convoy/comm/rendezvous/host_port.h"
#include "convoy/comm/rendezvous/store_session.h"

namespace {

using convoy::Error;
using convoy::comm::MemoryStore;
using convoy::comm::StoreRequest;
using convoy::comm::StoreSession;
using convoy::comm::StoreSide;
using convoy::comm::StoreVerb;

constexpr char kToken[] = "the token of this job";

void require(bool condition) {
  if (!condition) __builtin_trap();
}

// Whatever is understood is written and understood again as the same.
void messages(std::string_view bytes) {
  std::string rest(bytes);
  try {
    while (const auto body = convoy::comm::take_frame(rest, convoy::comm::kMaxFrameBytes)) {
      if (const auto request = convoy::comm::decode_request(*body)) {
        require(convoy::comm::encode(*request).substr(convoy::comm::kFrameHeadBytes) == *body);
      }
      if (const auto reply = convoy::comm::decode_reply(*body)) {
        require(convoy::comm::encode(*reply).substr(convoy::comm::kFrameHeadBytes) == *body);
      }
    }
  } catch (const Error& error) {
    require(error.code() == convoy::ErrorCode::kCorrupt);
  }
  require(rest.size() <= bytes.size());
}

// Feeds bytes in pieces whose lengths they choose themselves.
void feed(StoreSession& session, std::string_view bytes) {
  while (!bytes.empty() && !session.closed()) {
    const std::size_t piece = std::min<std::size_t>(bytes.size(), 1 + static_cast<unsigned char>(bytes.front()) % 64);
    session.feed(bytes.substr(0, piece));
    session.answer_waiting();
    bytes.remove_prefix(piece);
  }
}

// A stranger is never let in and changes nothing, even behind a true greeting.
void stranger(std::string_view bytes, bool greets) {
  MemoryStore store;
  store.set("key", "value");
  StoreSession session(store, kToken);
  if (greets) {
    session.feed(convoy::comm::encode(StoreRequest{StoreVerb::kHello, std::string(32, 'n'), "", 0}));
    require(!session.unsent().empty());
  }
  feed(session, bytes);
  require(!session.let_in());
  require(store.try_get("key") == "value");
  require(session.unsent().find("value") == std::string::npos);
}

// A client that was let in gets answers or is closed; the store's capacity holds.
void client(std::string_view bytes) {
  MemoryStore store(4096);
  StoreSession session(store, kToken);
  const std::string nonce(32, 'n');
  session.feed(convoy::comm::encode(StoreRequest{StoreVerb::kHello, nonce, "", 0}));
  const auto body = convoy::comm::take_frame(session.unsent(), convoy::comm::kMaxFrameBytes);
  const std::string challenge = convoy::comm::decode_reply(*body)->text;
  const std::string proof = convoy::comm::proof_of(StoreSide::kClient, kToken, nonce, challenge);
  session.feed(convoy::comm::encode(StoreRequest{StoreVerb::kProof, proof, "", 0}));
  require(session.let_in());
  feed(session, bytes);
}

void between_ranks(std::string_view bytes) {
  if (const auto head = convoy::comm::read_head(bytes)) {
    require(head->header.bytes <= bytes.size() - convoy::comm::kWireHeadBytes);
  }
  if (bytes.size() > convoy::comm::kMaxControlBytes) return;
  const auto control = convoy::comm::decode_control(bytes);
  if (!control || (control->notice && control->notice->message.size() > 1000)) return;
  require(convoy::comm::encode(*control) == bytes);
}

void introductions(std::string_view bytes) {
  try {
    const auto found = convoy::comm::decode_introduction(std::string(bytes), 1, 2);
    require(convoy::comm::encode(found) == bytes);
    convoy::comm::check_introductions({found, found});
  } catch (const Error& error) {
    require(error.code() == convoy::ErrorCode::kCorrupt || error.code() == convoy::ErrorCode::kInvalidArgument);
  }
}

void addresses(std::string_view bytes) {
  try {
    const auto place = convoy::comm::HostPort::parse(bytes);
    require(convoy::comm::HostPort::parse(place.str()).str() == place.str());
  } catch (const Error& error) {
    require(error.code() == convoy::ErrorCode::kInvalidArgument);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0: messages(bytes); break;
    case 1: stranger(bytes, false); break;
    case 2: stranger(bytes, true); break;
    case 3: client(bytes); break;
    case 4: between_ranks(bytes); break;
    case 5: introductions(bytes); break;
    default: addresses(bytes); break;
  }
  return 0;
}

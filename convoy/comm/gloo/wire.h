// What ranks say to each other over a link: heads of fixed size before payloads, and control messages that mirror the
// board and carry the abort notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/comm/transport.h"

namespace convoy::comm {

/// The kinds of messages.
enum class WireKind : std::uint32_t {
  kHello = 1,    ///< the first of each connection; its body is the number that the receiver published for the sender
  kData = 2,     ///< a message of the group
  kControl = 3,  ///< a Control
  kBye = 4,      ///< nothing but answers comes after it on this connection
  kByeSeen = 5,  ///< answers a bye: everything before it has arrived
  kReady = 6,    ///< the sender's keys are gone from the store
};

/// The head of a message. Both ends store numbers in little-endian order, as they lie in memory.
struct WireHead {
  /// Tells a head from other bytes.
  static constexpr std::uint32_t kMagic = 0x594f5643;
  /// kMagic.
  std::uint32_t magic = kMagic;
  /// The kind.
  std::uint32_t kind = 0;
  /// Of data: its number among all data of this pair of ranks, whichever connections it took.
  std::uint64_t order = 0;
  /// Of data: what it says about itself. Of others: only `bytes`, the length of the body.
  MessageHeader header;
  /// How many data messages of this connection the sender of the head has taken out and given back.
  std::uint64_t released = 0;
  /// How many control messages the sender of the head has seen.
  std::uint64_t controls_seen = 0;
};

/// The bytes of a head.
inline constexpr std::size_t kWireHeadBytes = sizeof(WireHead);
/// The longest body of a control message.
inline constexpr std::size_t kMaxControlBytes = 2048;
/// The most connections between two ranks.
inline constexpr std::size_t kMaxLanes = 8;

/// What a rank tells a peer beside data.
struct Control {
  /// Data messages given back, for each connection.
  std::vector<std::uint64_t> released;
  /// The rank's line on its board; the heartbeat as an age, since hosts have clocks of their own (-1: none yet).
  observe::BoardLine line;
  /// The age of the heartbeat.
  std::int64_t beat_age_ns = -1;
  /// The operations that it entered since it last told this peer.
  std::vector<observe::BoardOperation> entered;
  /// The rank's own abort notice.
  std::optional<AbortNotice> notice;
};

/// Returns a body of at most kMaxControlBytes; a notice's message may be cut.
std::string encode(const Control& control);
/// Returns what a body says; nothing when it is malformed.
std::optional<Control> decode_control(std::string_view body);
/// Returns a head if these bytes begin with one and hold its whole payload.
std::optional<WireHead> read_head(std::string_view bytes);

}  // namespace convoy::comm

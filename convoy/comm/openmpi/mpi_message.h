// How a message of the transport lies in a block: a head, and its payload behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "convoy/comm/gloo/wire.h"
#include "convoy/comm/openmpi/mpi_link.h"

namespace convoy::comm {

/// The head of a message. Both ends store numbers in little-endian order, as they lie in memory.
struct MpiHead {
  /// WireHead::kMagic.
  std::uint32_t magic = WireHead::kMagic;
  /// The kind.
  WireKind kind = WireKind::kData;
  /// Of data: what it says about itself. Of others: only `bytes`, the length of the body.
  MessageHeader header;
};

/// Where the payload begins: a cache line behind the head.
inline constexpr std::size_t kMpiHeadBytes = 64;
static_assert(sizeof(MpiHead) <= kMpiHeadBytes, "a head lies before the payload");

/// Returns a message with a copy of this payload of header.bytes.
inline MpiBlock make_message(MpiLink& link, WireKind kind, const MessageHeader& header, const void* payload) {
  MpiBlock block = link.take(kMpiHeadBytes + header.bytes);
  MpiHead head;
  head.kind = kind;
  head.header = header;
  std::memcpy(block.memory.get(), &head, sizeof(head));
  if (header.bytes > 0) std::memcpy(block.memory.get() + kMpiHeadBytes, payload, header.bytes);
  return block;
}

/// Returns the head of a block if it holds one and its whole payload.
inline std::optional<MpiHead> read_message(const MpiBlock& block) {
  MpiHead head;
  if (block.bytes < kMpiHeadBytes) return std::nullopt;
  std::memcpy(&head, block.memory.get(), sizeof(head));
  if (head.magic != WireHead::kMagic || head.header.bytes != block.bytes - kMpiHeadBytes) return std::nullopt;
  return head;
}

/// Returns the payload of a message.
inline const std::byte* payload_of(const MpiBlock& block) { return block.memory.get() + kMpiHeadBytes; }

}  // namespace convoy::comm

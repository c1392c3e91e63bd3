// Executor: messages in a wire format.
//
// The rule that keeps ranks alike: what is sent is what the sender goes on with. Whatever a rank sends of its inputs,
// sums or results, it replaces by what the receiver will read, so inputs are copied first. What it keeps to itself stays
// unrounded, but for results of an all-reduce: some ranks compute them and others are told. A rounding error of an input goes into the caller's residual.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convoy/comm/engine/executor.h"
#include "convoy/comm/engine/pieces.h"

namespace convoy::comm {
namespace {

float* floats(std::byte* memory) { return reinterpret_cast<float*>(memory); }

std::span<float> floats_of(const ScratchPool::Block& block, std::int64_t count) {
  return {floats(block.memory.get()), static_cast<std::size_t>(count)};
}

}  // namespace

bool Executor::compresses() const { return collective_.compression.format != WireFormat::kPlain; }

// Copies inputs, with the residual of earlier operations, and leaves what is not kept to later ones.
void Executor::copy_inputs() {
  const Buffer& residual = collective_.residual;
  for (const Buffer& input : collective_.inputs) {
    const std::int64_t count = input.elements();
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    input_copies_.push_back(pool_.take(bytes));
    const std::vector<Extent> copy{Extent{input_copies_.back().memory.get(), count}};
    copy_pieces({input.extents().begin(), input.extents().end()}, copy, sizeof(float));
    const std::span<float> values = floats_of(input_copies_.back(), count);
    const bool selects = collective_.compression.format == WireFormat::kSparse && collective_.compression.keep < 1;
    if (residual.elements() == 0 && !selects) continue;
    ScratchPool::Block before = pool_.take(bytes);
    const std::span<float> wanted = floats_of(before, count);
    std::fill(wanted.begin(), wanted.end(), 0.0F);
    const std::vector<Extent> whole{Extent{before.memory.get(), count}};
    const std::vector<Extent> kept(residual.extents().begin(), residual.extents().end());
    if (!kept.empty()) copy_pieces(kept, whole, sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = wanted[i] += values[i];
    if (selects) {
      const double share = collective_.compression.keep * static_cast<double>(count);
      keep_largest(values, static_cast<std::int64_t>(std::ceil(share)));
    }
    for (std::size_t i = 0; i < values.size(); ++i) wanted[i] -= values[i];
    if (!kept.empty()) copy_pieces(whole, kept, sizeof(float));
    pool_.give(std::move(before));
  }
}

void Executor::queue_encoded(const spec::Operation& operation) {
  const spec::Chunk& chunk = operation.target;
  if (chunk.count == 0) {
    peer(operation.peer).sends.emplace_back();
    return;
  }
  const WireFormat format = collective_.compression.format;
  const std::vector<Extent> pieces = pieces_of(chunk);
  const std::size_t plain_bytes = static_cast<std::size_t>(chunk.count) * sizeof(float);
  ScratchPool::Block values = pool_.take(plain_bytes);
  const std::vector<Extent> whole{Extent{values.memory.get(), chunk.count}};
  copy_pieces(pieces, whole, sizeof(float));
  Parcel parcel;
  parcel.copy = shared_pool_.share(most_encoded_bytes(format, chunk.count));
  parcel.data = parcel.copy.get();
  parcel.bytes = encode(format, floats_of(values, chunk.count), parcel.copy.get());
  if (format != WireFormat::kSparse && chunk.kind != spec::BufferKind::kScratch) {
    go_on_with(chunk, floats_of(values, chunk.count), {parcel.data, parcel.bytes});
  }
  pool_.give(std::move(values));
  peer(operation.peer).sends.push_back(std::move(parcel));
}

// Replaces a chunk of exact values by what its encoded bytes say.
void Executor::go_on_with(const spec::Chunk& chunk, std::span<const float> exact, std::span<const std::byte> encoded) {
  ScratchPool::Block rounded = pool_.take(exact.size_bytes());
  const std::span<float> read = floats_of(rounded, chunk.count);
  CONVOY_CHECK(decode(collective_.compression.format, encoded, read), "what was encoded can be decoded");
  if (chunk.kind == spec::BufferKind::kInput) keep_error(chunk, exact, read);
  copy_pieces({Extent{rounded.memory.get(), chunk.count}}, pieces_of(chunk), sizeof(float));
  pool_.give(std::move(rounded));
}

// Rounds a result that other ranks have in a wire format, or have computed themselves and round, too.
void Executor::round_result(const spec::Chunk& chunk) {
  const WireFormat format = collective_.compression.format;
  if (format == WireFormat::kSparse || collective_.schedule->collective != "all_reduce") return;
  ScratchPool::Block values = pool_.take(static_cast<std::size_t>(chunk.count) * sizeof(float));
  ScratchPool::Block encoded = pool_.take(most_encoded_bytes(format, chunk.count));
  copy_pieces(pieces_of(chunk), {Extent{values.memory.get(), chunk.count}}, sizeof(float));
  const std::size_t bytes = encode(format, floats_of(values, chunk.count), encoded.memory.get());
  go_on_with(chunk, floats_of(values, chunk.count), {encoded.memory.get(), bytes});
  pool_.give(std::move(values));
  pool_.give(std::move(encoded));
}

// Adds what rounding took from an input to the residual.
void Executor::keep_error(const spec::Chunk& chunk, std::span<const float> exact, std::span<const float> rounded) {
  std::int64_t at = 0;
  for (const Extent& extent : collective_.residual.extents()) {
    const std::int64_t first = std::max(at, chunk.offset);
    const std::int64_t last = std::min(at + extent.elements, chunk.offset + chunk.count);
    for (std::int64_t i = first; i < last; ++i) {
      const auto place = static_cast<std::size_t>(i - chunk.offset);
      const float error = exact[place] - rounded[place];
      // A value that is not finite has no error that could be made good.
      if (std::isfinite(error)) floats(extent.data)[i - at] += error;
    }
    at += extent.elements;
  }
}

// Takes a part of an encoded chunk; the whole is decoded and put in place.
void Executor::take_encoded(const Message& message, Peer& traffic) {
  const WireFormat format = collective_.compression.format;
  Receive& receive = traffic.receives.front();
  const std::int64_t count = receive.target->count;
  const std::size_t room = most_encoded_bytes(format, count);
  const MessageHeader& header = message.header;
  const bool expected = header.sequence == operation_.sequence && header.index == traffic.taken_messages;
  const bool fits = count == 0 ? header.bytes == 0 : header.bytes > 0 && header.bytes <= room - receive.taken_bytes;
  if (!expected || !fits)
    refuse_message(message, traffic, "at most " + std::to_string(room - receive.taken_bytes) + " bytes");
  ++traffic.taken_messages;
  ++messages_;
  if (count == 0) {
    transport_.release(message);
    traffic.receives.pop_front();
    return;
  }
  if (receive.encoded.memory == nullptr) receive.encoded = pool_.take(room);
  std::byte* const to = receive.encoded.memory.get() + receive.taken_bytes;
  if (message.remote) {
    transport_.fetch(message, 0, to, header.bytes);
  } else {
    std::memcpy(to, message.data, header.bytes);
  }
  transport_.release(message);
  receive.taken_bytes += header.bytes;
  const std::span<const std::byte> bytes(receive.encoded.memory.get(), receive.taken_bytes);
  const auto whole = encoded_bytes(format, count, bytes);
  if (!whole || receive.taken_bytes < *whole) return;
  Scratch decoded;
  decoded.owned.push_back(pool_.take(static_cast<std::size_t>(count) * sizeof(float)));
  decoded.pieces = {Extent{decoded.owned.back().memory.get(), count}};
  if (!decode(format, bytes, floats_of(decoded.owned.back(), count))) {
    fail(ErrorCode::kDesync,
         fmt::format("rank {} sent a message that is no {} of {} elements", message.peer, to_string(format), count),
         message.peer);
  }
  pool_.give(std::move(receive.encoded));
  put_decoded(*receive.target, std::move(decoded));
  traffic.receives.pop_front();
}

void Executor::put_decoded(const spec::Chunk& target, Scratch decoded) {
  if (target.kind == spec::BufferKind::kScratch) {
    scratches_[static_cast<std::size_t>(target.index)] = std::move(decoded);
    return;
  }
  copy_pieces(decoded.pieces, pieces_of(target), sizeof(float));
  let_go(decoded);
}

}  // namespace convoy::comm

// Executor: the data movement of one operation. What happens while it waits is in executor_wait.cpp.
#include "convoy/comm/engine/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "convoy/comm/engine/pieces.h"
#include "convoy/comm/engine/reduce.h"

namespace convoy::comm {
namespace {

bool overlap(const std::byte* a, const std::byte* a_end, const std::byte* b, const std::byte* b_end) {
  return a < b_end && b < a_end;
}

}  // namespace

Executor::Executor(Transport& transport, const ExecutorOptions& options, ExecutorPools& pools, const ExecutorTask& task,
                   std::atomic<std::uint64_t>& sent_bytes)
    : transport_(transport),
      options_(options),
      pool_(pools.scratch),
      shared_pool_(pools.shared),
      collective_(task.collective),
      operation_(task.operation),
      stores_(task.stores.get()),
      window_(stores_ != nullptr ? transport.window() : nullptr),
      sent_bytes_(sent_bytes),
      element_bytes_(element_bytes(collective_.dtype)),
      stream_(collective_.output.elements() * static_cast<std::int64_t>(element_bytes_) >=
              options.cache_bytes / transport.size()),
      rank_(transport.rank()),
      deadline_(system_clock(), options.timeout),
      began_(system_clock().now()),
      peers_(static_cast<std::size_t>(transport.size())),
      scratches_(static_cast<std::size_t>(collective_.schedule->scratches[static_cast<std::size_t>(rank_)])) {
  const std::vector<std::int64_t>& work = collective_.schedule->work_elements;
  const std::int64_t elements = work.empty() ? 0 : work[static_cast<std::size_t>(rank_)];
  if (elements == 0) return;
  work_block_ = pool_.take(static_cast<std::size_t>(elements) * element_bytes_);
  work_ = {Extent{work_block_.memory.get(), elements}};
}

Executor::~Executor() {
  pool_.give(std::move(work_block_));
  for (ScratchPool::Block& copy : input_copies_) pool_.give(std::move(copy));
  for (Scratch& scratch : scratches_) let_go(scratch);
  for (Deferred& part : deferred_) let_go(part.source);
  transport_.board().update(rank_, observe::BoardPhase::kOutside, messages_, -1);
}

void Executor::run() {
  if (window_ != nullptr) open_window();
  if (compresses()) copy_inputs();
  agree();
  if (is_native(*collective_.schedule)) return run_native();
  for (const spec::Round& round : rounds()) {
    run_round(round);
    ++round_;
  }
  wait_until_all_sent();
  if (window_open_) window_->close();
  // A peer that failed may have written memory that was read here: then its notice is there by now.
  look_up();
}

SmallReduce Executor::small_operation() const {
  return {operation_.sequence, collective_.dtype, collective_.reduce, collective_.output.elements()};
}

void Executor::run_small(SmallReducer& reducer, bool shown) {
  const SmallReduce operation = small_operation();
  const std::size_t bytes = static_cast<std::size_t>(operation.elements) * element_bytes_;
  ScratchPool::Block whole = pool_.take(bytes);
  const std::vector<Extent> pieces{Extent{whole.memory.get(), operation.elements}};
  if (!shown) {
    const std::span<const Extent> input = collective_.inputs.front().extents();
    copy_pieces({input.begin(), input.end()}, pieces, element_bytes_);
    reducer.publish(operation, whole.memory.get());
    sent_bytes_.fetch_add(bytes * (peers_.size() - 1), std::memory_order_relaxed);
  }
  if (!reducer.spin(operation)) wait_for_published(reducer);
  const std::span<const Extent> output = collective_.output.extents();
  reducer.combine_all(operation, whole.memory.get());
  copy_pieces(pieces, {output.begin(), output.end()}, element_bytes_);
  pool_.give(std::move(whole));
}

void Executor::run_round(const spec::Round& round) {
  // Those of the first round have been queued when the rank entered.
  if (round_ > 0 || transport_.size() == 1) queue_messages(round);
  exchange();
  write_deferred();
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (round[i].kind == spec::OpKind::kReduce || round[i].kind == spec::OpKind::kCopy) combine_chunks(round[i], i);
  }
}

void Executor::queue_messages(const spec::Round& round) {
  for (std::size_t i = 0; i < round.size(); ++i) {
    const spec::Operation& operation = round[i];
    if (operation.kind == spec::OpKind::kSend) {
      compresses() ? queue_encoded(operation) : queue_send(operation, i);
    } else if (operation.kind == spec::OpKind::kReceive) {
      peer(operation.peer).receives.emplace_back();
      peer(operation.peer).receives.back().target = &operation.target;
    }
  }
}

// Cuts a send into what the peer has already and what is left.
void Executor::queue_send(const spec::Operation& operation, std::size_t index) {
  spec::Chunk rest = operation.target;
  const auto found = stored_.find({round_, index});
  if (found != stored_.end()) {
    for (const StoredRange& range : found->second) {
      const std::int64_t done = rest.offset - operation.target.offset;
      rest.count = range.begin - done;
      queue_pieces(operation.peer, rest);
      Parcel parcel;
      parcel.bytes = static_cast<std::size_t>(range.end - range.begin) * element_bytes_;
      parcel.stored = true;
      peer(operation.peer).sends.push_back(std::move(parcel));
      rest.offset = operation.target.offset + range.end;
      rest.count = operation.target.count - range.end;
    }
    stored_.erase(found);
  }
  queue_pieces(operation.peer, rest);
  if (operation.target.count == 0) peer(operation.peer).sends.emplace_back();
}

void Executor::queue_pieces(int to, const spec::Chunk& chunk) {
  if (chunk.count == 0) return;
  const auto copied = copies_.find({chunk.offset, chunk.count});
  if (chunk.kind == spec::BufferKind::kOutput && copied != copies_.end()) {
    const std::size_t bytes = static_cast<std::size_t>(chunk.count) * element_bytes_;
    peer(to).sends.push_back(Parcel{copied->second.get(), bytes, false, copied->second});
    return;
  }
  for (const Extent& piece : pieces_of(chunk)) {
    Parcel parcel;
    parcel.data = piece.data;
    parcel.bytes = static_cast<std::size_t>(piece.elements) * element_bytes_;
    // Where peers are to find what they read in the arena, a copy there is cheaper than a way through the kernel.
    if (window_ != nullptr && parcel.bytes >= kFewBytes && !window_->arena().contains(piece.data, parcel.bytes)) {
      parcel.copy = shared_pool_.share(parcel.bytes);
      std::memcpy(parcel.copy.get(), piece.data, parcel.bytes);
      parcel.data = parcel.copy.get();
    }
    peer(to).sends.push_back(std::move(parcel));
  }
}

void Executor::exchange() {
  while (true) {
    const std::uint32_t seen = transport_.signal();
    const bool offered = offer_sends();
    const bool taken = take_receives();
    const std::vector<int> pending = pending_peers();
    if (pending.empty()) return;
    if (offered || taken) {
      look_up();
    } else {
      block(seen, pending);
    }
  }
}

std::vector<int> Executor::pending_peers() const {
  std::vector<int> pending;
  // Whoever is waited for comes before whoever has no room: the former is what the board shows.
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].receives.empty()) pending.push_back(static_cast<int>(rank));
  }
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].receives.empty() && !peers_[rank].sends.empty()) pending.push_back(static_cast<int>(rank));
  }
  return pending;
}

bool Executor::offer_sends() {
  bool moved = false;
  for (int step = 1; step <= transport_.size(); ++step) {
    const int to = (rank_ + step) % transport_.size();
    Peer& traffic = peer(to);
    while (!traffic.sends.empty() && offer_next(to, traffic)) moved = true;
  }
  return moved;
}

bool Executor::offer_next(int peer, Peer& traffic) {
  Parcel& parcel = traffic.sends.front();
  std::size_t bytes = parcel.bytes;
  if (bytes > 0 && !parcel.stored) {
    const std::size_t largest = transport_.largest_message(parcel.data);
    if (largest < bytes) bytes = largest - largest % element_bytes_;
    CONVOY_CHECK(bytes > 0, "a transport takes at least one element");
  }
  const MessageHeader header{options_.generation, operation_.sequence, traffic.sent_messages, bytes};
  const auto ticket = transport_.try_send(peer, header, parcel.data);
  if (!ticket) return false;
  ++traffic.sent_messages;
  ++messages_;
  sent_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes > 0 && !transport_.sent(peer, *ticket)) {
    outstanding_.push_back(Outstanding{peer, *ticket, parcel.data, parcel.data + bytes, round_, {}});
    // A copy is cut only where messages of it are copied once more.
    if (bytes == parcel.bytes) outstanding_.back().copy = std::move(parcel.copy);
  }
  if (bytes == parcel.bytes) {
    traffic.sends.pop_front();
  } else {
    parcel.data += bytes;
    parcel.bytes -= bytes;
  }
  return true;
}

bool Executor::take_receives() {
  bool moved = false;
  for (int step = 1; step <= transport_.size(); ++step) {
    const int from = (rank_ + transport_.size() - step) % transport_.size();
    Peer& traffic = peer(from);
    while (!traffic.receives.empty() && take_next(from, traffic)) moved = true;
  }
  return moved;
}

bool Executor::take_next(int peer, Peer& traffic) {
  Message message;
  if (!transport_.try_receive(peer, message)) return false;
  if (message.header.generation != options_.generation) {
    transport_.release(message);
    return true;
  }
  if (compresses()) {
    take_encoded(message, traffic);
    return true;
  }
  Receive& receive = traffic.receives.front();
  const spec::Chunk& target = *receive.target;
  check_message(message, traffic, target.count - receive.received);
  ++traffic.taken_messages;
  ++messages_;
  const auto elements = static_cast<std::int64_t>(message.header.bytes / element_bytes_);
  const spec::Chunk part{target.kind, target.index, target.offset + receive.received, elements};
  message.stored ? take_stored(message, part) : place(message, part);
  receive.received += elements;
  if (receive.received == target.count) traffic.receives.pop_front();
  return true;
}

void Executor::check_message(const Message& message, const Peer& traffic, std::int64_t room) const {
  const MessageHeader& header = message.header;
  const bool fits =
      header.bytes % element_bytes_ == 0 && header.bytes / element_bytes_ <= static_cast<std::uint64_t>(room);
  const bool progress = header.bytes > 0 || room == 0;
  if (header.sequence == operation_.sequence && header.index == traffic.taken_messages && fits && progress) return;
  refuse_message(message, traffic, fmt::format("at most {} elements of {} bytes", room, element_bytes_));
}

void Executor::refuse_message(const Message& message, const Peer& traffic, const std::string& expected) const {
  const MessageHeader header = message.header;
  transport_.release(message);
  fail(ErrorCode::kDesync,
       fmt::format("rank {} sent message {} of operation #{} with {} bytes where rank {} expected message {} of "
                   "operation #{} with {}",
                   message.peer, header.index, header.sequence, header.bytes, rank_, traffic.taken_messages,
                   operation_.sequence, expected),
       message.peer);
}

void Executor::place(const Message& message, const spec::Chunk& part) {
  if (part.count == 0) {
    transport_.release(message);
    return;
  }
  if (part.kind == spec::BufferKind::kScratch) {
    hold(scratches_[static_cast<std::size_t>(part.index)], message, message.lent);
    return;
  }
  const std::vector<Extent> targets = pieces_of(part);
  forget_sent();
  if (conflicts(targets, false)) {
    // What this round sends may be released only after the other side could write, which waits for us in turn: then
    // nothing may stay lent.
    deferred_.push_back(Deferred{part, Scratch{}});
    hold(deferred_.back().source, message, message.lent && !message.remote && !conflicts(targets, true));
    return;
  }
  if (message.remote) {
    fetch(message, targets);
  } else {
    copy_pieces({Extent{const_cast<std::byte*>(message.data), part.count}}, targets, element_bytes_, stream_);
  }
  transport_.release(message);
}

void Executor::fetch(const Message& message, const std::vector<Extent>& targets) {
  std::size_t done = 0;
  for (const Extent& target : targets) {
    const std::size_t bytes = static_cast<std::size_t>(target.elements) * element_bytes_;
    transport_.fetch(message, done, target.data, bytes);
    done += bytes;
  }
}

void Executor::hold(Scratch& scratch, const Message& message, bool keep_lent) {
  if (message.remote && keep_lent && scratch.pieces.empty()) {
    scratch.remote.push_back(message);
    return;
  }
  own_remote(scratch);
  const auto elements = static_cast<std::int64_t>(message.header.bytes / element_bytes_);
  if (keep_lent && !message.remote) {
    scratch.pieces.push_back(Extent{const_cast<std::byte*>(message.data), elements});
    scratch.lent.push_back(message);
    return;
  }
  scratch.owned.push_back(pool_.take(message.header.bytes));
  if (message.remote) {
    transport_.fetch(message, 0, scratch.owned.back().memory.get(), message.header.bytes);
  } else {
    std::memcpy(scratch.owned.back().memory.get(), message.data, message.header.bytes);
  }
  scratch.pieces.push_back(Extent{scratch.owned.back().memory.get(), elements});
  transport_.release(message);
}

void Executor::write_deferred() {
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    const std::vector<Extent> targets = pieces_of(deferred_[i].target);
    wait_until_writable(targets);
    copy_pieces(deferred_[i].source.pieces, targets, element_bytes_, stream_);
    let_go(deferred_[i].source);
  }
  deferred_.clear();
}

void Executor::own_everything_held() {
  for (Scratch& scratch : scratches_) own(scratch);
  for (Deferred& part : deferred_) own(part.source);
}

// Copies what lies in the sender's memory, and gives it back.
void Executor::own_remote(Scratch& scratch) {
  for (const Message& message : std::exchange(scratch.remote, {})) hold(scratch, message, false);
}

void Executor::own(Scratch& scratch) {
  own_remote(scratch);
  if (scratch.lent.empty()) return;
  std::int64_t elements = 0;
  for (const Extent& piece : scratch.pieces) elements += piece.elements;
  ScratchPool::Block block = pool_.take(static_cast<std::size_t>(elements) * element_bytes_);
  const std::vector<Extent> whole{Extent{block.memory.get(), elements}};
  copy_pieces(scratch.pieces, whole, element_bytes_);
  let_go(scratch);
  scratch.pieces = whole;
  scratch.owned.push_back(std::move(block));
}

void Executor::let_go(Scratch& scratch) {
  for (const Message& message : scratch.lent) transport_.release(message);
  for (const Message& message : scratch.remote) transport_.release(message);
  for (ScratchPool::Block& block : scratch.owned) pool_.give(std::move(block));
  scratch = Scratch{};
}

void Executor::forget_sent() {
  std::erase_if(outstanding_, [this](const Outstanding& send) { return transport_.sent(send.peer, send.ticket); });
}

bool Executor::conflicts(const std::byte* data, std::size_t bytes, bool this_round_only) const {
  return std::any_of(outstanding_.begin(), outstanding_.end(), [&](const Outstanding& send) {
    return (!this_round_only || send.round == round_) && overlap(data, data + bytes, send.begin, send.end);
  });
}

bool Executor::conflicts(const std::vector<Extent>& pieces, bool this_round_only) const {
  if (outstanding_.empty()) return false;
  return std::any_of(pieces.begin(), pieces.end(), [&](const Extent& piece) {
    return conflicts(piece.data, static_cast<std::size_t>(piece.elements) * element_bytes_, this_round_only);
  });
}

std::vector<Extent> Executor::pieces_of(const spec::Chunk& chunk) {
  std::span<const Extent> extents = collective_.output.extents();
  Extent copy;
  if (chunk.kind == spec::BufferKind::kInput) {
    const Buffer& input = collective_.inputs[static_cast<std::size_t>(chunk.index)];
    extents = input.extents();
    if (!input_copies_.empty()) {
      copy = Extent{input_copies_[static_cast<std::size_t>(chunk.index)].memory.get(), input.elements()};
      extents = {&copy, 1};
    }
  } else if (chunk.kind == spec::BufferKind::kScratch) {
    extents = scratches_[static_cast<std::size_t>(chunk.index)].pieces;
  } else if (chunk.kind == spec::BufferKind::kWork) {
    extents = work_;
  }
  std::vector<Extent> pieces;
  std::int64_t skip = chunk.offset;
  std::int64_t left = chunk.count;
  for (const Extent& extent : extents) {
    if (left == 0) break;
    if (skip >= extent.elements) {
      skip -= extent.elements;
      continue;
    }
    const std::int64_t count = std::min(left, extent.elements - skip);
    pieces.push_back(Extent{extent.data + static_cast<std::size_t>(skip) * element_bytes_, count});
    left -= count;
    skip = 0;
  }
  CONVOY_CHECK(left == 0, "a schedule's chunk lies inside its buffer");
  return pieces;
}

}  // namespace convoy::comm

// Messages through a control segment that all ranks map; payloads in an arena are read where they lie.
#include "convoy/comm/shared_memory/shared_memory_transport.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "convoy/base/processor.h"
#include "convoy/comm/meeting.h"
#include "convoy/comm/shared_memory/peer_process.h"
#include "convoy/comm/shared_memory/shared_segment.h"
#include "convoy/comm/shared_memory/shared_window.h"

namespace convoy::comm {
namespace {

// A sleeper looks up this often by itself, so that deadlines, deaths and lost wake-ups are seen.
constexpr Duration kSlice = std::chrono::milliseconds(50);
constexpr std::size_t kPublishedByTwo = std::size_t{1} << 15;
constexpr std::size_t kPublishedByMore = std::size_t{1} << 14;
constexpr Duration kSpin = std::chrono::microseconds(25);
constexpr Duration kYielding = std::chrono::microseconds(200);

// Every rank reads what all others show, which pays for more bytes the fewer they are.
std::size_t published_by(int ranks) { return ranks <= 2 ? kPublishedByTwo : kPublishedByMore; }

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  timespec time{};
  time.tv_sec = seconds.count();
  time.tv_nsec = (limit - seconds).count();
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

class SharedMemoryTransport final : public Transport {
 public:
  SharedMemoryTransport(Store& store, int rank, int size, const SharedMemoryOptions& options)
      : options_(options),
        meeting_{options.group, options.generation, rank, size, options.limit},
        arena_(options.arena != nullptr ? *options.arena : process_arena()),
        rank_(rank),
        size_(size),
        spins_(usable_processors() >= size),
        lanes_(static_cast<std::size_t>(size)) {
    for (LaneState& lane : lanes_) lane.uses.assign(options.slots + options.staging_chunks, 0);
    try {
      join(store, Deadline(system_clock(), options.limit));
    } catch (...) {
      give_up(store);
      throw;
    }
  }
  ~SharedMemoryTransport() override { leave(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "shared_memory"; }
  std::size_t largest_message(const std::byte* data) const override {
    return arena_.contains(data) || reads_memory_ ? SIZE_MAX : options_.chunk_bytes;
  }
  std::optional<std::uint64_t> try_send(int peer, const MessageHeader& header, const std::byte* data) override;
  bool sent(int peer, std::uint64_t ticket) override {
    return ticket == kCopied || given_back(peer, loan_of(ticket), use_of(ticket));
  }
  bool try_receive(int peer, Message& message) override;
  void fetch(const Message& message, std::size_t offset, std::byte* to, std::size_t bytes) override {
    read_memory_of(pids_[static_cast<std::size_t>(message.peer)],
                   reinterpret_cast<std::uint64_t>(message.data) + offset, to, bytes);
  }
  void release(const Message& message) override;
  std::uint32_t signal() const override { return view_.rank(rank_).signal.load(); }
  void wait(std::uint32_t seen, Duration limit) override;
  void wake_all() override {
    for (int rank = 0; rank < size_; ++rank) touch(rank);
  }
  observe::ProgressBoard& board() override { return *board_; }
  void raise_abort(const AbortNotice& notice) override;
  std::optional<AbortNotice> abort_notice() const override;
  std::optional<std::string> lost(int peer) override {
    if (view_.rank(peer).presence.load() == Presence::kLeft) return "it has left the group";
    if (watches_[static_cast<std::size_t>(peer)].ended()) return "its process has ended";
    return std::nullopt;
  }
  // Peers that read on from the arena meet the abort notice before they call their result good.
  void withdraw(Duration limit) override {
    window_->take_back(limit, [this](int peer) { return lost(peer).has_value(); });
  }
  std::uint64_t sent_bytes(int peer) const override {
    return lanes_[static_cast<std::size_t>(peer)].bytes + published_bytes_;
  }
  std::size_t publish_capacity() const override { return view_.shape().publish_bytes; }
  void publish(const Published& payload) override;
  std::optional<Published> published(int rank, std::uint64_t sequence) override;
  OutputWindow* window() override { return window_ ? &*window_ : nullptr; }
  void watch_published(bool on) override { view_.rank(rank_).watches.store(on ? 1 : 0); }

 private:
  // The ticket of a message whose payload was free again at once. Others name a loan and its use.
  static constexpr std::uint64_t kCopied = UINT64_MAX;

  // What this rank alone knows of its two lanes to and from a peer.
  struct LaneState {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    // How often each loan was given; where to look for a free one first.
    std::vector<std::uint64_t> uses;
    std::size_t next_loan = 0;
    std::size_t next_chunk = 0;
    std::uint64_t bytes = 0;
    // Lent messages taken from this peer and not released.
    std::size_t held = 0;
  };

  LaneState& lane(int peer) { return lanes_[static_cast<std::size_t>(peer)]; }
  std::uint64_t ticket_of(std::size_t loan, std::uint64_t use) const { return use * view_.shape().loans() + loan; }
  std::size_t loan_of(std::uint64_t ticket) const { return ticket % view_.shape().loans(); }
  std::uint64_t use_of(std::uint64_t ticket) const { return ticket / view_.shape().loans(); }
  bool given_back(int peer, std::size_t loan, std::uint64_t use) const {
    return view_.loan(rank_, peer, loan).load(std::memory_order_acquire) >= use;
  }
  std::optional<std::size_t> free_loan(int peer, std::size_t begin, std::size_t count, std::size_t& next);
  bool put_payload(int peer, LaneSlot& slot, std::uint64_t bytes, const std::byte* data);
  void touch(int rank) {
    RankCell& cell = view_.rank(rank);
    cell.signal.fetch_add(1);
    if (cell.sleepers.load() != 0) futex_wake(cell.signal);
  }

  void join(Store& store, const Deadline& deadline);
  void make_segment(Store& store);
  void map_peers(const std::vector<FilePlace>& places);
  void try_reading();
  void await(Presence presence, const Deadline& deadline);
  void give_up(Store& store) noexcept;
  void leave() noexcept;

  const SharedMemoryOptions options_;
  const Meeting meeting_;
  SharedArena& arena_;
  const int rank_;
  const int size_;
  const bool spins_;
  FileMapping segment_;
  SegmentView view_;
  std::optional<observe::SharedBoard> board_;
  std::vector<FileMapping> peer_arenas_;
  std::optional<SharedWindow> window_;
  std::vector<ProcessWatch> watches_;
  std::vector<std::int64_t> pids_;
  // Whether peers read this rank's large private buffers through the kernel, which lets all of them.
  bool reads_memory_ = false;
  std::uint64_t probe_ = 0;
  std::vector<LaneState> lanes_;
  // Counted for each peer: all of them read it.
  std::uint64_t published_bytes_ = 0;
};

std::optional<std::uint64_t> SharedMemoryTransport::try_send(int peer, const MessageHeader& header,
                                                             const std::byte* data) {
  LaneState& lane = this->lane(peer);
  LaneEnds& ends = view_.ends(rank_, peer);
  if (lane.sent - ends.tail.load() >= options_.slots) return std::nullopt;
  LaneSlot& slot = view_.slot(rank_, peer, lane.sent);
  if (!put_payload(peer, slot, header.bytes, data)) return std::nullopt;
  slot.header = header;
  ends.head.store(++lane.sent);
  lane.bytes += header.bytes;
  touch(peer);
  const bool lent = slot.place == PayloadPlace::kArena || slot.place == PayloadPlace::kRemote;
  return lent ? ticket_of(slot.loan, slot.use) : kCopied;
}

std::optional<std::size_t> SharedMemoryTransport::free_loan(int peer, std::size_t begin, std::size_t count,
                                                            std::size_t& next) {
  const LaneState& lane = this->lane(peer);
  for (std::size_t step = 0; step < count; ++step) {
    const std::size_t loan = begin + (next + step) % count;
    if (!given_back(peer, loan, lane.uses[loan])) continue;
    next = (next + step + 1) % count;
    return loan;
  }
  return std::nullopt;
}

// Says in the slot where the payload lies, copying it where it has to be; false when there is no room for it now.
bool SharedMemoryTransport::put_payload(int peer, LaneSlot& slot, std::uint64_t bytes, const std::byte* data) {
  LaneState& lane = this->lane(peer);
  slot.place = PayloadPlace::kNone;
  if (bytes == 0) return true;
  if (data == nullptr) {
    slot.place = PayloadPlace::kStored;
    return true;
  }
  const bool in_arena = arena_.contains(data, bytes);
  const bool remote = !in_arena && reads_memory_ && (bytes >= options_.remote_bytes || bytes > options_.chunk_bytes);
  const bool lend = in_arena || remote;
  CONVOY_CHECK(lend || bytes <= options_.chunk_bytes, "a message outside the arena fits into a staging chunk");
  const auto loan = lend ? free_loan(peer, 0, options_.slots, lane.next_loan)
                         : free_loan(peer, options_.slots, options_.staging_chunks, lane.next_chunk);
  if (!loan) return false;
  slot.place = in_arena ? PayloadPlace::kArena : remote ? PayloadPlace::kRemote : PayloadPlace::kStaging;
  slot.offset = in_arena ? arena_.offset_of(data)
                : remote ? reinterpret_cast<std::uint64_t>(data)
                         : *loan - options_.slots;
  slot.loan = static_cast<std::uint32_t>(*loan);
  slot.use = ++lane.uses[*loan];
  if (!lend) std::memcpy(view_.staging(rank_, peer, slot.offset), data, bytes);
  return true;
}

bool SharedMemoryTransport::try_receive(int peer, Message& message) {
  LaneState& lane = this->lane(peer);
  LaneEnds& ends = view_.ends(peer, rank_);
  if (ends.head.load(std::memory_order_acquire) == lane.taken) return false;
  const LaneSlot& slot = view_.slot(peer, rank_, lane.taken);
  const FileMapping& arena = peer_arenas_[static_cast<std::size_t>(peer)];
  message = Message{};
  message.header = slot.header;
  message.peer = peer;
  message.ticket = kCopied;
  const std::uint64_t bytes = slot.header.bytes;
  // Half of the loans stay free for messages behind those that the receiver keeps.
  const bool may_keep = (lane.held + 1) * 2 <= options_.slots;
  message.stored = slot.place == PayloadPlace::kStored;
  const bool loaned = slot.place != PayloadPlace::kNone && !message.stored;
  bool sane = loaned ? slot.loan < view_.shape().loans() : message.stored || bytes == 0;
  if (slot.place == PayloadPlace::kArena) {
    sane = sane && bytes <= arena.size() && slot.offset <= arena.size() - bytes;
    message.data = arena.data() + slot.offset;
    message.lent = may_keep;
  } else if (slot.place == PayloadPlace::kRemote) {
    message.data = reinterpret_cast<const std::byte*>(slot.offset);  // NOLINT: an address of the sender
    message.remote = true;
    message.lent = may_keep;
  } else if (slot.place == PayloadPlace::kStaging) {
    sane = sane && bytes <= options_.chunk_bytes && slot.offset < options_.staging_chunks;
    if (sane) message.data = view_.staging(peer, rank_, slot.offset);
  }
  if (!sane) throw Error(ErrorCode::kInternal, fmt::format("rank {} sent a message that lies nowhere", peer));
  if (loaned) message.ticket = ticket_of(slot.loan, slot.use);
  if (message.lent) ++lane.held;
  ends.tail.store(++lane.taken);
  // Somebody who waits for a slot has to hear of it; who has slots to spare need not. Head and tail are stored and
  // loaded in one total order: either the sender sees this tail, or the full lane is seen here.
  if (ends.head.load() - lane.taken + 1 >= options_.slots) touch(peer);
  return true;
}

void SharedMemoryTransport::release(const Message& message) {
  if (message.lent) --lane(message.peer).held;
  if (message.ticket == kCopied) return;
  view_.loan(message.peer, rank_, loan_of(message.ticket)).store(use_of(message.ticket), std::memory_order_release);
  touch(message.peer);
}

void SharedMemoryTransport::wait(std::uint32_t seen, Duration limit) {
  const Deadline deadline(system_clock(), limit);
  if (spins_) {
    const Deadline spin(system_clock(), std::min(limit, kSpin));
    do {
      for (int i = 0; i < 32; ++i) {
        if (signal() != seen) return;
        relax_processor();
      }
    } while (!spin.expired());
  } else {
    // Whoever is waited for may need this processor. To sleep and be woken costs more than to give it away for a while.
    const Deadline yielding(system_clock(), std::min(limit, kYielding));
    do {
      if (signal() != seen) return;
      std::this_thread::yield();
    } while (!yielding.expired());
  }
  RankCell& cell = view_.rank(rank_);
  cell.sleepers.fetch_add(1);
  while (cell.signal.load() == seen && !deadline.expired()) {
    futex_wait(cell.signal, seen, std::min(kSlice, deadline.remaining()));
  }
  cell.sleepers.fetch_sub(1);
}

void SharedMemoryTransport::publish(const Published& payload) {
  PublishCell& cell = view_.publication(rank_, payload.sequence);
  cell.fingerprint = payload.fingerprint;
  cell.bytes = payload.bytes;
  std::byte* const place =
      payload.bytes <= PublishCell::kInlineBytes ? cell.inline_data : reinterpret_cast<std::byte*>(&cell + 1);
  std::memcpy(place, payload.data, payload.bytes);
  published_bytes_ += payload.bytes;
  // Number and watch are stored and loaded in one total order: either the other side, having said that it watches,
  // finds this number, or its watch is seen here.
  cell.sequence.store(payload.sequence);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && view_.rank(rank).watches.load() != 0) touch(rank);
  }
}

std::optional<Published> SharedMemoryTransport::published(int rank, std::uint64_t sequence) {
  const PublishCell& cell = view_.publication(rank, sequence);
  if (cell.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
  const std::uint64_t bytes = cell.bytes;
  if (bytes > view_.shape().publish_bytes) {
    throw Error(ErrorCode::kInternal,
                fmt::format("rank {} publishes {} bytes, more than there is room for", rank, bytes));
  }
  const std::byte* const place =
      bytes <= PublishCell::kInlineBytes ? cell.inline_data : reinterpret_cast<const std::byte*>(&cell + 1);
  return Published{sequence, cell.fingerprint, place, bytes};
}

void SharedMemoryTransport::raise_abort(const AbortNotice& notice) {
  AbortCell& cell = view_.abort();
  std::uint32_t empty = 0;
  if (cell.state.compare_exchange_strong(empty, 1)) {
    cell.rank = notice.rank;
    cell.code = static_cast<std::int32_t>(notice.code);
    cell.length = static_cast<std::uint32_t>(std::min(notice.message.size(), AbortCell::kTextBytes));
    std::memcpy(cell.text, notice.message.data(), cell.length);
    cell.state.store(2);
  }
  wake_all();
}

std::optional<AbortNotice> SharedMemoryTransport::abort_notice() const {
  const AbortCell& cell = view_.abort();
  if (cell.state.load() != 2) return std::nullopt;
  AbortNotice notice;
  notice.rank = cell.rank;
  notice.code = static_cast<ErrorCode>(cell.code);
  notice.message.assign(cell.text, std::min<std::size_t>(cell.length, AbortCell::kTextBytes));
  return notice;
}

void SharedMemoryTransport::join(Store& store, const Deadline& deadline) {
  if (rank_ == 0) make_segment(store);
  FilePlace own;
  own.pid = ::getpid();
  own.descriptor = arena_.descriptor();
  own.bytes = arena_.capacity();
  std::vector<FilePlace> places;
  for (const std::string& text : meeting_.exchange(store, "rank", own.str(), deadline)) {
    places.push_back(FilePlace::parse(meeting_.key(fmt::format("rank/{}", places.size())), text));
  }
  if (rank_ != 0) {
    const FilePlace control =
        FilePlace::parse(meeting_.key("control"), store.get(meeting_.key("control"), deadline.remaining()));
    SegmentShape shape{size_, options_.slots, options_.staging_chunks, options_.chunk_bytes, published_by(size_)};
    if (control.bytes != shape.bytes()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("rank {} and rank 0 form group '{}' with different options", rank_, options_.group));
    }
    segment_ = FileMapping::open(control.pid, static_cast<int>(control.descriptor), control.bytes, true);
    view_ = SegmentView(segment_.data(), shape);
    if (view_.nonce() != control.nonce) {
      throw Error(ErrorCode::kPeerLost, fmt::format("rank 0 of group '{}' is gone", options_.group));
    }
  }
  board_.emplace(view_.board(), size_);
  map_peers(places);
  window_.emplace(view_, rank_, arena_, peer_arenas_);
  // Two steps: nobody takes its keys away before all have read them, and nobody goes on before all keys are gone, so
  // that the same name can be used again at once.
  probe_ = random_number();
  view_.rank(rank_).probe_value.store(probe_);
  view_.rank(rank_).probe_address.store(reinterpret_cast<std::uint64_t>(&probe_));
  await(Presence::kMapped, deadline);
  try_reading();
  meeting_.leave(store, "rank");
  if (rank_ == 0) store.remove(meeting_.key("control"));
  await(Presence::kReady, deadline);
  reads_memory_ = options_.remote_bytes < SIZE_MAX;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && view_.ends(rank_, peer).reads_memory.load() == 0) reads_memory_ = false;
  }
  segment_.close_descriptor();
}

// Says to each peer whether its memory can be read here: kernels allow it to some and not to others.
void SharedMemoryTransport::try_reading() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const RankCell& cell = view_.rank(peer);
    std::uint64_t found = 0;
    try {
      read_memory_of(pids_[static_cast<std::size_t>(peer)], cell.probe_address.load(), &found, sizeof(found));
    } catch (const Error&) {
      continue;
    }
    if (found == cell.probe_value.load()) view_.ends(peer, rank_).reads_memory.store(1);
  }
}

void SharedMemoryTransport::make_segment(Store& store) {
  SegmentShape shape{size_, options_.slots, options_.staging_chunks, options_.chunk_bytes, published_by(size_)};
  segment_ = FileMapping::create("convoy-group", shape.bytes());
  view_ = SegmentView(segment_.data(), shape);
  view_.nonce() = random_number();
  FilePlace control;
  control.pid = ::getpid();
  control.descriptor = segment_.descriptor();
  control.bytes = segment_.size();
  control.nonce = view_.nonce();
  store.set(meeting_.key("control"), control.str());
}

void SharedMemoryTransport::map_peers(const std::vector<FilePlace>& places) {
  for (int rank = 0; rank < size_; ++rank) {
    const FilePlace& place = places[static_cast<std::size_t>(rank)];
    pids_.push_back(place.pid);
    if (rank == rank_) {
      peer_arenas_.emplace_back();
      watches_.emplace_back();
      continue;
    }
    try {
      peer_arenas_.push_back(FileMapping::open(place.pid, static_cast<int>(place.descriptor), place.bytes, true));
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("rank {} of group '{}' is gone: {}", rank, options_.group, error.message()));
    }
    watches_.emplace_back(place.pid);
  }
}

void SharedMemoryTransport::await(Presence presence, const Deadline& deadline) {
  view_.rank(rank_).presence.store(presence);
  wake_all();
  while (true) {
    const std::uint32_t seen = signal();
    std::vector<int> missing;
    for (int rank = 0; rank < size_; ++rank) {
      if (view_.rank(rank).presence.load() >= presence) continue;
      missing.push_back(rank);
      if (const auto why = lost(rank)) {
        throw Error(ErrorCode::kPeerLost,
                    fmt::format("rank {} was lost while group '{}' formed: {}", rank, options_.group, *why));
      }
    }
    if (missing.empty()) return;
    if (deadline.expired()) meeting_.fail_missing(missing);
    wait(seen, std::min(kSlice, deadline.remaining()));
  }
}

void SharedMemoryTransport::give_up(Store& store) noexcept {
  if (segment_.data() != nullptr) leave();
  meeting_.leave(store, "rank");
  try {
    if (rank_ == 0) store.remove(meeting_.key("control"));
  } catch (...) {
    // The store is gone, and the keys with it.
  }
}

void SharedMemoryTransport::leave() noexcept {
  view_.rank(rank_).presence.store(Presence::kLeft);
  wake_all();
}

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(Store& store, int rank, int size,
                                                        const SharedMemoryOptions& options) {
  CONVOY_CHECK(size >= 1 && rank >= 0 && rank < size, fmt::format("rank {} of a group of {}", rank, size));
  CONVOY_CHECK(options.slots >= 2 && options.staging_chunks >= 1 && options.chunk_bytes >= 8,
               "a group over shared memory has slots and staging");
  return std::make_unique<SharedMemoryTransport>(store, rank, size, options);
}

}  // namespace convoy::comm

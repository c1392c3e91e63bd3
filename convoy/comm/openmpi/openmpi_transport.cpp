// The transport over MpiLink: cuts payloads into messages, waits, runs MPI's collectives, joins and leaves in order.
#include "convoy/comm/openmpi/openmpi_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "convoy/base/processor.h"
#include "convoy/comm/byte_fields.h"
#include "convoy/comm/meeting.h"
#include "convoy/comm/native_collectives.h"
#include "convoy/comm/openmpi/mpi_link.h"
#include "convoy/comm/openmpi/mpi_message.h"
#include "convoy/comm/openmpi/native_call.h"
#include "convoy/comm/openmpi/rank_talk.h"
#include "convoy/comm/shared_memory/peer_process.h"

namespace convoy::comm {
namespace {

constexpr char kTopic[] = "openmpi";
constexpr Duration kSlice = std::chrono::milliseconds(50);
// MPI wakes nobody: a wait looks around by itself, without giving its processor away where each rank has one, then
// giving it to others, then between naps that grow with the wait. A collective of MPI's stands still while its rank does
// not look, so a wait for one is as busy as MPI's own for longer.
constexpr Duration kSpin = std::chrono::microseconds(200);
constexpr Duration kYielding = std::chrono::milliseconds(2);
constexpr Duration kNative = std::chrono::milliseconds(20);
constexpr Duration kLongestNap = std::chrono::milliseconds(1);
constexpr int kNapShare = 64;

// What ranks tell each other in the store.
struct Introduction {
  std::int64_t pid = 0;
  std::string host;
  std::uint64_t chunk_bytes = 0;

  std::string str() const {
    FieldWriter fields;
    fields.number(static_cast<std::uint64_t>(pid));
    fields.text(host);
    fields.number(chunk_bytes);
    return fields.bytes();
  }
  static Introduction parse(const std::string& text, int rank) {
    FieldReader fields(text);
    Introduction found;
    found.pid = static_cast<std::int64_t>(fields.number());
    found.host = fields.text();
    found.chunk_bytes = fields.number();
    if (!fields.finished()) throw Error(ErrorCode::kCorrupt, fmt::format("rank {} introduces itself badly", rank));
    return found;
  }
};

class OpenMpiTransport final : public Transport, private NativeCollectives {
 public:
  OpenMpiTransport(Store& store, int rank, int size, const OpenMpiOptions& options)
      : options_(options),
        meeting_{options.group, options.generation, rank, size, options.limit},
        spins_(usable_processors() >= size),
        bytes_(static_cast<std::size_t>(size), 0) {
    try {
      join(store, Deadline(system_clock(), options.limit));
    } catch (...) {
      meeting_.leave(store, kTopic);
      throw;
    }
  }
  ~OpenMpiTransport() override { leave(); }

  int rank() const override { return meeting_.rank; }
  int size() const override { return meeting_.size; }
  std::string name() const override { return "openmpi"; }
  std::size_t largest_message(const std::byte*) const override { return options_.chunk_bytes; }
  std::optional<std::uint64_t> try_send(int peer, const MessageHeader& header, const std::byte* data) override;
  bool sent(int, std::uint64_t) override { return true; }  // payloads are copied
  bool try_receive(int peer, Message& message) override;
  void release(const Message& message) override {
    const auto found = held_.find(message.ticket);
    link_->give(std::move(found->second));
    held_.erase(found);
  }
  std::uint32_t signal() const override { return talk_->signal(); }
  void wait(std::uint32_t seen, Duration limit) override;
  // What is new on the board or the notice went to the peers when it was posted.
  void wake_all() override { talk_->wake(); }
  observe::ProgressBoard& board() override { return talk_->board(); }
  void raise_abort(const AbortNotice& notice) override { talk_->raise_abort(notice); }
  std::optional<AbortNotice> abort_notice() const override { return talk_->abort_notice(); }
  std::optional<std::string> lost(int peer) override {
    const auto why = talk_->lost(peer);
    // Who is done with a collective of MPI's may leave while others are still at it.
    return native_ != nullptr && talk_->left(peer) ? std::nullopt : why;
  }
  void withdraw(Duration limit) override;
  std::uint64_t sent_bytes(int peer) const override { return bytes_[static_cast<std::size_t>(peer)]; }
  NativeCollectives* native() override { return this; }

 private:
  // NativeCollectives.
  std::optional<std::string> refusal(const Collective& collective) const override {
    return native_refusal(*link_, collective);
  }
  void start(const Collective& collective) override;
  bool finished() override;

  void join(Store& store, const Deadline& deadline);
  std::vector<ProcessWatch> meet(Store& store, const Deadline& deadline) const;
  void await_ready(const Deadline& deadline);
  void drain();
  void leave() noexcept;

  const OpenMpiOptions options_;
  const Meeting meeting_;
  const bool spins_;
  std::unique_ptr<MpiLink> link_;
  std::unique_ptr<RankTalk> talk_;
  // The one caller's.
  std::vector<std::uint64_t> bytes_;
  std::map<std::uint64_t, MpiBlock> held_;
  std::uint64_t next_ticket_ = 0;
  std::unique_ptr<NativeCall> native_;
};

std::optional<std::uint64_t> OpenMpiTransport::try_send(int peer, const MessageHeader& header, const std::byte* data) {
  if (talk_->left(peer)) return std::nullopt;
  CONVOY_CHECK(header.bytes <= options_.chunk_bytes, "a message fits into a chunk");
  if (link_->sending(peer, MpiLane::kData) >= options_.chunks) {
    talk_->poll();
    if (link_->sending(peer, MpiLane::kData) >= options_.chunks) return std::nullopt;
  }
  link_->send(peer, MpiLane::kData, make_message(*link_, WireKind::kData, header, data));
  bytes_[static_cast<std::size_t>(peer)] += header.bytes;
  return 0;
}

bool OpenMpiTransport::try_receive(int peer, Message& message) {
  std::optional<MpiBlock> block = link_->receive(peer, MpiLane::kData);
  if (!block && talk_->poll()) block = link_->receive(peer, MpiLane::kData);
  if (!block) return false;
  const auto head = read_message(*block);
  if (!head || head->kind != WireKind::kData) {
    talk_->distrust(peer);
    return false;
  }
  message = Message{};
  message.header = head->header;
  message.data = payload_of(*block);
  // It lies in memory of this rank's own.
  message.lent = true;
  message.peer = peer;
  message.ticket = next_ticket_++;
  held_.emplace(message.ticket, std::move(*block));
  return true;
}

void OpenMpiTransport::wait(std::uint32_t seen, Duration limit) {
  const TimePoint begin = system_clock().now();
  const Duration spinning = !spins_ ? Duration(0) : native_ != nullptr ? Duration(kNative) : Duration(kSpin);
  const Duration yielding = native_ != nullptr ? kNative : kYielding;
  while (signal() == seen) {
    if (talk_->poll()) continue;
    const Duration waited = system_clock().now() - begin;
    if (waited >= limit) return;
    if (waited < spinning) {
      relax_processor();
    } else if (waited < yielding) {
      std::this_thread::yield();
    } else {
      system_clock().sleep_for(std::min({waited / kNapShare, kLongestNap, limit - waited}));
    }
  }
}

void OpenMpiTransport::start(const Collective& collective) {
  auto call = std::make_unique<NativeCall>(collective, rank());
  link_->start(call->call());
  native_ = std::move(call);
}

bool OpenMpiTransport::finished() {
  if (!link_->finished()) return false;
  native_->finish();
  native_.reset();
  return true;
}

// Payloads are copied, so nothing of them is lent. A collective of MPI's is: its memory may be freed from now on, and
// MPI cannot be told. So the notice goes out, and then nothing in this process calls MPI any more.
void OpenMpiTransport::withdraw(Duration limit) {
  if (native_ == nullptr) return;
  const Deadline deadline(system_clock(), limit);
  try {
    while (!talk_->all_told() && !deadline.expired()) talk_->poll();
  } catch (const Error&) {
    // Then peers learn of it by their own deadline.
  }
  link_->give_up();
  native_.reset();
}

void OpenMpiTransport::join(Store& store, const Deadline& deadline) {
  check_started_by_mpi(rank(), size());
  std::vector<ProcessWatch> watches = meet(store, deadline);
  link_ = make_mpi_link(rank(), size(), deadline.remaining());
  talk_ = std::make_unique<RankTalk>(*link_, rank(), std::move(watches));
  // As over shared memory: nobody takes its key away before all have read it, for the communicator needed all, and
  // nobody goes on before all keys are gone, so that the same name can be used again at once.
  meeting_.leave(store, kTopic);
  talk_->say_ready();
  await_ready(deadline);
}

// Returns who watches over each peer's process, where it is one of this host.
std::vector<ProcessWatch> OpenMpiTransport::meet(Store& store, const Deadline& deadline) const {
  const std::string here = host_name() + "\n" + host_memory();
  const std::string own = Introduction{::getpid(), here, options_.chunk_bytes}.str();
  std::vector<ProcessWatch> watches;
  for (const std::string& text : meeting_.exchange(store, kTopic, own, deadline)) {
    const auto number = static_cast<int>(watches.size());
    const Introduction other = Introduction::parse(text, number);
    if (other.chunk_bytes != options_.chunk_bytes) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} and rank {} form group '{}' with different options",
                                                           rank(), number, options_.group));
    }
    const bool watched = other.host == here && number != rank();
    watches.push_back(watched ? ProcessWatch(other.pid) : ProcessWatch());
  }
  return watches;
}

void OpenMpiTransport::await_ready(const Deadline& deadline) {
  while (true) {
    const std::uint32_t seen = signal();
    std::vector<int> missing;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank() && !talk_->ready(peer)) missing.push_back(peer);
    }
    if (missing.empty()) return;
    for (const int peer : missing) {
      if (const auto why = talk_->lost(peer)) {
        throw Error(ErrorCode::kPeerLost,
                    fmt::format("rank {} was lost while group '{}' formed: {}", peer, options_.group, *why));
      }
    }
    if (deadline.expired()) meeting_.fail_missing(missing);
    wait(seen, std::min(kSlice, deadline.remaining()));
  }
}

// Throws data away that nobody waits for.
void OpenMpiTransport::drain() {
  for (int peer = 0; peer < size(); ++peer) {
    while (auto block = link_->receive(peer, MpiLane::kData)) link_->give(std::move(*block));
  }
}

// The communicator may only go when nothing is on its way in it: MPI keeps the order of a pair of ranks, so what a peer
// sent before its farewell has come when the farewell has, or comes with the next look.
void OpenMpiTransport::leave() noexcept {
  if (talk_ == nullptr || native_ != nullptr) return;
  try {
    const Deadline deadline(system_clock(), options_.farewell);
    while (true) {
      const bool moved = talk_->poll();
      drain();
      if (talk_->say_bye() && !moved && link_->idle()) break;
      if (deadline.expired()) return;
      if (!moved) std::this_thread::yield();
    }
    if (talk_->parted()) link_->retire();
  } catch (...) {
    // Peers then see the end of this process, or wait for it until their deadline.
  }
}

}  // namespace

std::unique_ptr<Transport> make_openmpi_transport(Store& store, int rank, int size, const OpenMpiOptions& options) {
  CONVOY_CHECK(size >= 1 && rank >= 0 && rank < size, fmt::format("rank {} of a group of {}", rank, size));
  CONVOY_CHECK(options.chunks >= 1 && options.chunk_bytes >= 8, "a group over Open MPI has chunks");
  return std::make_unique<OpenMpiTransport>(store, rank, size, options);
}

}  // namespace convoy::comm

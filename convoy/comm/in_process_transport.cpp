// Queues between threads: one lock over all of them, since this transport is about being simple and not about speed.
#include "convoy/comm/in_process_transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "convoy/base/mutex.h"

namespace convoy::comm {
namespace {

struct Parcel {
  MessageHeader header;
  std::uint64_t ticket = 0;
  const std::byte* data = nullptr;
  std::vector<std::byte> copy;
};

// What is on its way from one rank to another.
struct Lane {
  std::deque<Parcel> queued;
  std::deque<Parcel> taken;  // received, not released
  std::uint64_t next_ticket = 0;
  std::uint64_t sent_bytes = 0;
};

// What the transports of one group share.
struct Hub {
  explicit Hub(int count, const InProcessOptions& chosen)
      : ranks(count),
        options(chosen),
        board_memory(observe::SharedBoard::bytes(count) + 64),
        board(aligned_board_memory(), count),
        lanes(static_cast<std::size_t>(count) * static_cast<std::size_t>(count)),
        left(static_cast<std::size_t>(count), false),
        signals(static_cast<std::size_t>(count)) {}

  void* aligned_board_memory() {
    void* memory = board_memory.data();
    std::size_t space = board_memory.size();
    return std::align(64, observe::SharedBoard::bytes(ranks), memory, space);
  }
  Lane& lane(int from, int to) CONVOY_REQUIRES(mutex) {
    return lanes[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(to)];
  }
  void touch(int rank) CONVOY_REQUIRES(mutex) {
    signals[static_cast<std::size_t>(rank)].fetch_add(1);
    changed.notify_all();
  }
  void touch_all() CONVOY_REQUIRES(mutex) {
    for (int rank = 0; rank < ranks; ++rank) touch(rank);
  }

  const int ranks;
  const InProcessOptions options;
  std::vector<std::byte> board_memory;
  observe::SharedBoard board;
  Mutex mutex;
  CondVar changed;
  std::vector<Lane> lanes CONVOY_GUARDED_BY(mutex);
  std::vector<bool> left CONVOY_GUARDED_BY(mutex);
  std::optional<AbortNotice> notice CONVOY_GUARDED_BY(mutex);
  std::vector<std::atomic<std::uint32_t>> signals;
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  ~InProcessTransport() override {
    withdraw(std::chrono::milliseconds(100));
    MutexLock lock(hub_->mutex);
    hub_->left[static_cast<std::size_t>(rank_)] = true;
    hub_->touch_all();
  }

  int rank() const override { return rank_; }
  int size() const override { return hub_->ranks; }
  std::string name() const override { return "in_process"; }
  std::size_t largest_message(const std::byte*) const override {
    return hub_->options.copy_bytes == 0 ? SIZE_MAX : std::max<std::size_t>(hub_->options.copy_bytes, 8);
  }

  std::optional<std::uint64_t> try_send(int peer, const MessageHeader& header, const std::byte* data) override {
    MutexLock lock(hub_->mutex);
    Lane& lane = hub_->lane(rank_, peer);
    if (lane.queued.size() + lane.taken.size() >= hub_->options.queue_length) return std::nullopt;
    Parcel parcel;
    parcel.header = header;
    parcel.ticket = lane.next_ticket++;
    parcel.data = data;
    if (hub_->options.copy_bytes != 0) {
      parcel.copy.assign(data, data + header.bytes);
      parcel.data = parcel.copy.data();
    }
    lane.queued.push_back(std::move(parcel));
    lane.sent_bytes += header.bytes;
    hub_->touch(peer);
    return lane.next_ticket - 1;
  }

  bool sent(int peer, std::uint64_t ticket) override {
    if (hub_->options.copy_bytes != 0) return true;
    MutexLock lock(hub_->mutex);
    const Lane& lane = hub_->lane(rank_, peer);
    const auto same = [ticket](const Parcel& parcel) { return parcel.ticket == ticket; };
    return std::none_of(lane.queued.begin(), lane.queued.end(), same) &&
           std::none_of(lane.taken.begin(), lane.taken.end(), same);
  }

  bool try_receive(int peer, Message& message) override {
    MutexLock lock(hub_->mutex);
    Lane& lane = hub_->lane(peer, rank_);
    if (lane.queued.empty()) return false;
    lane.taken.push_back(std::move(lane.queued.front()));
    lane.queued.pop_front();
    const Parcel& parcel = lane.taken.back();
    message.header = parcel.header;
    message.data = parcel.data;
    // Half of the places stay free for messages behind those that the receiver keeps.
    message.lent = hub_->options.copy_bytes == 0 && lane.taken.size() * 2 <= hub_->options.queue_length;
    message.peer = peer;
    message.ticket = parcel.ticket;
    return true;
  }

  void release(const Message& message) override {
    MutexLock lock(hub_->mutex);
    Lane& lane = hub_->lane(message.peer, rank_);
    std::erase_if(lane.taken, [&](const Parcel& parcel) { return parcel.ticket == message.ticket; });
    hub_->touch(message.peer);
  }

  std::uint32_t signal() const override { return hub_->signals[static_cast<std::size_t>(rank_)].load(); }

  void wait(std::uint32_t seen, Duration limit) override {
    const Deadline deadline(system_clock(), limit);
    MutexLock lock(hub_->mutex);
    while (signal() == seen && !deadline.expired()) hub_->changed.wait_for(hub_->mutex, deadline.remaining());
  }

  void wake_all() override {
    MutexLock lock(hub_->mutex);
    hub_->touch_all();
  }

  observe::ProgressBoard& board() override { return hub_->board; }

  void raise_abort(const AbortNotice& notice) override {
    MutexLock lock(hub_->mutex);
    if (!hub_->notice) hub_->notice = notice;
    hub_->touch_all();
  }

  std::optional<AbortNotice> abort_notice() const override {
    MutexLock lock(hub_->mutex);
    return hub_->notice;
  }

  std::optional<std::string> lost(int peer) override {
    MutexLock lock(hub_->mutex);
    if (!hub_->left[static_cast<std::size_t>(peer)]) return std::nullopt;
    return "it has left the group";
  }

  void withdraw(Duration limit) override {
    if (hub_->options.copy_bytes != 0) return;
    const Deadline deadline(system_clock(), limit);
    MutexLock lock(hub_->mutex);
    for (int peer = 0; peer < hub_->ranks; ++peer) {
      Lane& lane = hub_->lane(rank_, peer);
      std::erase_if(lane.queued, [](const Parcel& parcel) { return parcel.header.bytes > 0; });
      while (!lane.taken.empty() && !deadline.expired()) hub_->changed.wait_for(hub_->mutex, deadline.remaining());
    }
  }

  std::uint64_t sent_bytes(int peer) const override {
    MutexLock lock(hub_->mutex);
    return hub_->lane(rank_, peer).sent_bytes;
  }

 private:
  const std::shared_ptr<Hub> hub_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_in_process_transports(int ranks, const InProcessOptions& options) {
  CONVOY_CHECK(ranks >= 1, "a group has at least one rank");
  const auto hub = std::make_shared<Hub>(ranks, options);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank) transports.push_back(std::make_unique<InProcessTransport>(hub, rank));
  return transports;
}

}  // namespace convoy::comm

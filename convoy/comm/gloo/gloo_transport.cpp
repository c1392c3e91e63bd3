// The transport over channels: joins, mirrors the board to all peers, and leaves in order.
#include "convoy/comm/gloo/gloo_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "convoy/base/mutex.h"
#include "convoy/comm/gloo/channel.h"
#include "convoy/comm/gloo/interfaces.h"
#include "convoy/comm/gloo/introduction.h"
#include "convoy/comm/gloo/mirrored_board.h"
#include "convoy/comm/meeting.h"
#include "convoy/comm/shared_memory/peer_process.h"

namespace convoy::comm {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(50);
constexpr char kTopic[] = "gloo";

class GlooTransport final : public Transport, private ChannelHost {
 public:
  GlooTransport(Store& store, int rank, int size, const GlooOptions& options)
      : options_(options),
        meeting_{options.group, options.generation, rank, size, options.limit},
        board_(
            size, rank, [this](const auto& operation) { to_all([&](Channel& peer) { peer.post_enter(operation); }); },
            [this] { to_all([](Channel& peer) { peer.post_line(); }); }) {
    try {
      join(store, Deadline(system_clock(), options.limit));
    } catch (...) {
      meeting_.leave(store, kTopic);
      close();
      throw;
    }
  }
  ~GlooTransport() override {
    say_bye();
    close();
  }

  int rank() const override { return meeting_.rank; }
  int size() const override { return meeting_.size; }
  std::string name() const override { return "gloo"; }
  std::size_t largest_message(const std::byte*) const override { return options_.chunk_bytes; }
  std::optional<std::uint64_t> try_send(int peer, const MessageHeader& header, const std::byte* data) override {
    if (!channel(peer).try_send(header, data)) return std::nullopt;
    return 0;
  }
  bool sent(int, std::uint64_t) override { return true; }  // payloads are copied
  bool try_receive(int peer, Message& message) override { return channel(peer).try_receive(message); }
  void release(const Message& message) override { channel(message.peer).release(message.ticket); }
  std::uint32_t signal() const override { return signal_.load(); }
  void wait(std::uint32_t seen, Duration limit) override {
    const Deadline deadline(system_clock(), limit);
    MutexLock lock(mutex_);
    while (signal() == seen && !deadline.expired()) news_.wait_for(mutex_, std::min(kSlice, deadline.remaining()));
  }
  // What is new on the board or the notice went to the peers when it was posted.
  void wake_all() override { changed(); }
  observe::ProgressBoard& board() override { return board_; }
  void raise_abort(const AbortNotice& notice) override {
    {
      MutexLock lock(mutex_);
      if (!notice_) notice_ = notice;
      if (!own_notice_) own_notice_ = notice;
    }
    to_all([](Channel& peer) { peer.post_notice(); });
    changed();
  }
  std::optional<AbortNotice> abort_notice() const override {
    MutexLock lock(mutex_);
    return notice_;
  }
  std::optional<std::string> lost(int peer) override { return channel(peer).lost(); }
  void withdraw(Duration) override {}  // nothing is lent
  std::uint64_t sent_bytes(int peer) const override {
    const auto& channel = channels_[static_cast<std::size_t>(peer)];
    return channel == nullptr ? 0 : channel->sent_bytes();
  }

 private:
  Channel& channel(int peer) { return *channels_[static_cast<std::size_t>(peer)]; }
  void to_all(const std::function<void(Channel&)>& call) {
    for (const auto& channel : channels_) {
      if (channel != nullptr) call(*channel);
    }
  }

  // ChannelHost.
  void changed() override {
    MutexLock lock(mutex_);
    signal_.fetch_add(1);
    news_.notify_all();
  }
  Control describe() override;
  void told(int peer, const Control& control) override;

  void join(Store& store, const Deadline& deadline);
  Introduction introduce() const;
  void connect_all(const std::vector<Introduction>& all, const Deadline& deadline);
  void await(bool (Channel::*reached)(), const Deadline& deadline);
  void say_bye() noexcept;
  void close() noexcept;

  // Constant after the constructor.
  const GlooOptions options_;
  const Meeting meeting_;
  std::vector<std::string> addresses_;
  std::vector<std::string> secrets_;
  std::vector<std::unique_ptr<Link>> links_;
  // Self-synchronised.
  MirroredBoard board_;
  std::atomic<std::uint32_t> signal_{0};

  mutable Mutex mutex_;
  CondVar news_;
  std::optional<AbortNotice> notice_ CONVOY_GUARDED_BY(mutex_);
  std::optional<AbortNotice> own_notice_ CONVOY_GUARDED_BY(mutex_);
  // Before the links, which their buffers use, and before everything that their threads use.
  std::vector<std::unique_ptr<Channel>> channels_;
};

Control GlooTransport::describe() {
  Control control = board_.describe();
  MutexLock lock(mutex_);
  control.notice = own_notice_;
  return control;
}

void GlooTransport::told(int peer, const Control& control) {
  board_.hear(peer, control);
  if (!control.notice) return;
  MutexLock lock(mutex_);
  if (!notice_) notice_ = control.notice;
}

void GlooTransport::join(Store& store, const Deadline& deadline) {
  std::vector<std::string> interfaces = options_.interfaces;
  if (interfaces.empty()) interfaces.push_back("127.0.0.1");
  if (interfaces.size() > kMaxLanes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} network interfaces are too many: at most {}", interfaces.size(), kMaxLanes));
  }
  for (const std::string& interface : interfaces) {
    addresses_.push_back(local_address(interface));
    links_.push_back(make_link(addresses_.back(), rank(), size(), deadline.remaining()));
  }
  for (int peer = 0; peer < size(); ++peer)
    secrets_.push_back(fmt::format("{:016x}{:016x}", random_number(), random_number()));
  std::vector<Introduction> all;
  for (const std::string& text : meeting_.exchange(store, kTopic, encode(introduce()), deadline)) {
    all.push_back(decode_introduction(text, static_cast<int>(all.size()), size()));
  }
  check_introductions(all);
  connect_all(all, deadline);
  // As over shared memory: nobody takes its key away before all have read it, and nobody goes on before all keys are
  // gone, so that the same name can be used again at once.
  await(&Channel::greeted, deadline);
  meeting_.leave(store, kTopic);
  to_all([](Channel& peer) { peer.say_ready(); });
  await(&Channel::ready, deadline);
}

Introduction GlooTransport::introduce() const {
  Introduction own;
  own.host = host_name();
  own.addresses = addresses_;
  own.chunks = options_.chunks;
  own.chunk_bytes = options_.chunk_bytes;
  own.secrets = secrets_;
  own.places.resize(static_cast<std::size_t>(size()));
  for (int peer = 0; peer < size(); ++peer) {
    for (const auto& link : links_) {
      own.places[static_cast<std::size_t>(peer)].push_back(peer == rank() ? "" : link->address(peer));
    }
  }
  return own;
}

void GlooTransport::connect_all(const std::vector<Introduction>& all, const Deadline& deadline) {
  const auto me = static_cast<std::size_t>(rank());
  channels_.resize(static_cast<std::size_t>(size()));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const Introduction& other = all[static_cast<std::size_t>(peer)];
    for (std::size_t lane = 0; lane < links_.size(); ++lane) {
      try {
        links_[lane]->connect(peer, other.places[me][lane]);
      } catch (const Error& error) {
        if (deadline.expired()) meeting_.fail_missing({peer});
        throw Error(ErrorCode::kPeerLost,
                    fmt::format("rank {} of group '{}' cannot be reached at {} on {}: {}", peer, options_.group,
                                other.addresses[lane], other.host, error.message()));
      }
    }
    channels_[static_cast<std::size_t>(peer)] = std::make_unique<Channel>(
        static_cast<ChannelHost&>(*this), links_, peer, ChannelShape{options_.chunks, options_.chunk_bytes},
        other.secrets[me], secrets_[static_cast<std::size_t>(peer)]);
  }
}

void GlooTransport::await(bool (Channel::*reached)(), const Deadline& deadline) {
  while (true) {
    const std::uint32_t seen = signal();
    std::vector<int> missing;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank() || (channel(peer).*reached)()) continue;
      missing.push_back(peer);
      if (const auto why = channel(peer).lost()) {
        throw Error(ErrorCode::kPeerLost,
                    fmt::format("rank {} was lost while group '{}' formed: {}", peer, options_.group, *why));
      }
    }
    if (missing.empty()) return;
    if (deadline.expired()) meeting_.fail_missing(missing);
    wait(seen, std::min(kSlice, deadline.remaining()));
  }
}

// Lets all peers receive what was sent before the connections are closed: a socket that is closed with unread bytes in
// it takes back what it still had to send.
//
// An abort notice that came from another rank is handed on first: it may take longer on its own way to a peer than this
// rank's farewell, and then the peer would blame this rank.
void GlooTransport::say_bye() noexcept {
  try {
    bool hand_on = false;
    {
      MutexLock lock(mutex_);
      hand_on = notice_ && !own_notice_;
      if (hand_on) own_notice_ = notice_;
    }
    if (hand_on) to_all([](Channel& peer) { peer.post_notice(); });
    const Deadline deadline(system_clock(), options_.farewell);
    while (!deadline.expired()) {
      const std::uint32_t seen = signal();
      bool finished = true;
      to_all([&](Channel& peer) { finished = peer.say_bye() && finished; });
      if (finished) return;
      wait(seen, std::min(kSlice, deadline.remaining()));
    }
  } catch (...) {
    // Peers then see the end of the connection.
  }
}

void GlooTransport::close() noexcept {
  try {
    for (const auto& link : links_) link->close();
    channels_.clear();
  } catch (...) {
    // Nothing is left to be told.
  }
}

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(Store& store, int rank, int size, const GlooOptions& options) {
  CONVOY_CHECK(size >= 1 && rank >= 0 && rank < size, fmt::format("rank {} of a group of {}", rank, size));
  CONVOY_CHECK(options.chunks >= 2 && options.chunk_bytes >= 8, "a group over sockets has chunks");
  return std::make_unique<GlooTransport>(store, rank, size, options);
}

}  // namespace convoy::comm

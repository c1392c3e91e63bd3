// The channel's two halves: what this rank sends, and what the receiving threads do with what comes.
#include "convoy/comm/gloo/channel.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace convoy::comm {
namespace {

// A line that changes all the time is told this often.
constexpr Duration kLinePause = std::chrono::milliseconds(25);

}  // namespace

Channel::Channel(ChannelHost& host, const std::vector<std::unique_ptr<Link>>& links, int peer,
                 const ChannelShape& shape, std::string shown, std::string expected)
    : host_(host),
      peer_(peer),
      shape_(shape),
      slot_bytes_(kWireHeadBytes + std::max(shape.chunk_bytes, kMaxControlBytes)),
      shown_(std::move(shown)),
      expected_(std::move(expected)) {
  MutexLock lock(mutex_);
  for (const auto& link : links) {
    Lane& lane = lanes_.emplace_back();
    for (std::size_t i = 0; i < shape.chunks; ++i) lane.staging.push_back(make_slot(*link, slot_bytes_));
    for (Slot& slot : lane.once) slot = make_slot(*link, kWireHeadBytes + 64);
    const std::size_t count = shape.chunks + kWindow + kReserve + kOnce;
    for (std::size_t i = 0; i < count; ++i) {
      lane.inbox.push_back(make_slot(*link, slot_bytes_));
      post(lane, i);
    }
    send(lane, lane.once[0], WireKind::kHello, shown_);
  }
  for (std::size_t i = 0; i < kWindow + kReserve; ++i) {
    controls_.push_back(make_slot(*links.front(), kWireHeadBytes + kMaxControlBytes));
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].thread = std::jthread([this, i] { run(i); });
  }
}

Channel::~Channel() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (Lane& lane : lanes_) {
    for (Slot& slot : lane.inbox) slot.buffer->abort();
  }
  for (Lane& lane : lanes_) lane.thread.join();
}

Channel::Slot Channel::make_slot(Link& link, std::size_t bytes) const {
  Slot slot;
  slot.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  slot.buffer = link.buffer(slot.memory.get(), bytes);
  return slot;
}

bool Channel::greeted() {
  MutexLock lock(mutex_);
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.greeted; });
}

void Channel::say_ready() {
  MutexLock lock(mutex_);
  send(lanes_.front(), lanes_.front().once[3], WireKind::kReady, "");
}

bool Channel::ready() {
  MutexLock lock(mutex_);
  return ready_;
}

std::size_t Channel::emptiest_lane() const {
  std::size_t best = 0;
  std::uint64_t least = UINT64_MAX;
  for (std::size_t step = 0; step < lanes_.size(); ++step) {
    const std::size_t at = (next_order_ + step) % lanes_.size();
    const std::uint64_t waiting = lanes_[at].sent - lanes_[at].given_back;
    if (waiting >= least) continue;
    best = at;
    least = waiting;
  }
  return best;
}

bool Channel::try_send(const MessageHeader& header, const std::byte* data) {
  MutexLock lock(mutex_);
  if (gone() || bye_said_) return false;
  CONVOY_CHECK(header.bytes <= shape_.chunk_bytes, "a message fits into a chunk");
  Lane& lane = lanes_[emptiest_lane()];
  if (lane.sent - lane.given_back >= shape_.chunks) return false;
  WireHead head;
  head.kind = static_cast<std::uint32_t>(WireKind::kData);
  head.order = next_order_++;
  head.header = header;
  transmit(lane, lane.staging[lane.sent++ % shape_.chunks], head, data);
  bytes_ += header.bytes;
  return true;
}

void Channel::send(Lane& lane, Slot& slot, WireKind kind, std::string_view body) {
  WireHead head;
  head.kind = static_cast<std::uint32_t>(kind);
  head.header.bytes = body.size();
  transmit(lane, slot, head, body.data());
}

void Channel::transmit(Lane& lane, Slot& slot, WireHead head, const void* body) {
  head.released = lane.reported = lane.returned;
  head.controls_seen = controls_reported_ = controls_came_;
  try {
    // The peer has said that it has this buffer's last message, so this wait is over at once.
    if (slot.in_use) slot.buffer->wait_sent();
    std::memcpy(slot.memory.get(), &head, kWireHeadBytes);
    if (head.header.bytes > 0) std::memcpy(slot.memory.get() + kWireHeadBytes, body, head.header.bytes);
    slot.in_use = true;
    slot.buffer->send(peer_, kWireHeadBytes + head.header.bytes);
  } catch (const Error& error) {
    lose(error.message());
  }
}

bool Channel::try_receive(Message& message) {
  MutexLock lock(mutex_);
  for (std::size_t at = 0; at < lanes_.size(); ++at) {
    Lane& lane = lanes_[at];
    if (lane.arrived.empty()) continue;
    const std::size_t slot = lane.arrived.front();
    WireHead head;
    std::memcpy(&head, lane.inbox[slot].memory.get(), kWireHeadBytes);
    if (head.order != next_taken_) continue;
    lane.arrived.pop_front();
    ++lane.taken;
    ++next_taken_;
    message.header = head.header;
    message.data = lane.inbox[slot].memory.get() + kWireHeadBytes;
    message.lent = false;
    message.peer = peer_;
    message.ticket = at * lane.inbox.size() + slot;
    return true;
  }
  return false;
}

void Channel::release(std::uint64_t ticket) {
  MutexLock lock(mutex_);
  const std::size_t size = lanes_.front().inbox.size();
  Lane& lane = lanes_[ticket / size];
  post(lane, ticket % size);
  ++lane.returned;
  if ((lane.returned - lane.reported) * 2 >= shape_.chunks) credits_due_ = true;
  flush();
}

void Channel::post(Lane& lane, std::size_t at) {
  if (lost_) return;
  try {
    lane.inbox[at].buffer->receive(peer_);
    lane.posted.push_back(at);
  } catch (const Error& error) {
    lose(error.message());
  }
}

void Channel::post_enter(const observe::BoardOperation& operation) {
  MutexLock lock(mutex_);
  entered_.push_back(operation);
  // Older ones are forgotten by every board.
  if (entered_.size() > observe::ProgressBoard::kHistory) entered_.erase(entered_.begin());
  flush();
}

void Channel::post_notice() {
  MutexLock lock(mutex_);
  notice_due_ = true;
  flush();
}

void Channel::post_line() {
  MutexLock lock(mutex_);
  line_due_ = true;
  flush();
}

bool Channel::flush_due() const {
  const bool line = line_due_ && system_clock().now() - line_told_ >= kLinePause;
  return line || notice_due_ || credits_due_ || !entered_.empty() || answer_due();
}

void Channel::flush() {
  if (gone() || bye_said_ || !flush_due()) return;
  const std::uint64_t waiting = controls_sent_ - controls_seen_;
  if (waiting >= (answer_due() ? kWindow + kReserve : kWindow)) return;
  Control control = host_.describe();
  for (Lane& lane : lanes_) control.released.push_back(lane.reported = lane.returned);
  control.entered = std::exchange(entered_, {});
  if (!notice_due_) control.notice.reset();
  notice_due_ = credits_due_ = line_due_ = false;
  line_told_ = system_clock().now();
  send(lanes_.front(), controls_[controls_sent_++ % controls_.size()], WireKind::kControl, encode(control));
}

std::optional<std::string> Channel::lost() {
  MutexLock lock(mutex_);
  if (left()) return "it has left the group";
  return lost_;
}

std::uint64_t Channel::sent_bytes() {
  MutexLock lock(mutex_);
  return bytes_;
}

bool Channel::say_bye() {
  MutexLock lock(mutex_);
  if (gone()) return true;
  if (!bye_said_) {
    flush();
    if (notice_due_ || !entered_.empty()) return false;
    bye_said_ = true;
    for (Lane& lane : lanes_) send(lane, lane.once[1], WireKind::kBye, "");
  }
  return gone() || std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.bye_seen; });
}

void Channel::lose(const std::string& why) {
  if (!lost_) lost_ = fmt::format("its connection has ended: {}", why);
  host_.changed();
}

bool Channel::left() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.bye_came; });
}

void Channel::run(std::size_t lane) {
  ::pthread_setname_np(::pthread_self(), "convoy-gloo");
  while (true) {
    LinkBuffer* next = nullptr;
    std::size_t at = 0;
    {
      MutexLock lock(mutex_);
      if (stopping_ || lanes_[lane].posted.empty()) return;
      at = lanes_[lane].posted.front();
      next = lanes_[lane].inbox[at].buffer.get();
    }
    try {
      if (!next->wait_received()) return;
    } catch (const Error& error) {
      MutexLock lock(mutex_);
      return lose(error.message());
    }
    MutexLock lock(mutex_);
    lanes_[lane].posted.pop_front();
    if (!handle(lane, at)) return lose("it sends what is no message");
  }
}

// Deals with a message that lies in inbox `at`; false when it makes no sense.
bool Channel::handle(std::size_t number, std::size_t at) {
  Lane& lane = lanes_[number];
  const std::string_view bytes(reinterpret_cast<const char*>(lane.inbox[at].memory.get()), slot_bytes_);
  const auto head = read_head(bytes);
  if (!head) return false;
  const auto kind = static_cast<WireKind>(head->kind);
  const std::string_view body = bytes.substr(kWireHeadBytes, head->header.bytes);
  if (!lane.greeted) {
    lane.greeted = kind == WireKind::kHello && body == expected_;
    if (!lane.greeted) return false;
    post(lane, at);
    host_.changed();
    return true;
  }
  if (!note_counts(number, *head)) return false;
  bool understood = true;
  switch (kind) {
    case WireKind::kData:
      if (head->header.bytes > shape_.chunk_bytes) return false;
      lane.arrived.push_back(at);
      host_.changed();
      flush();
      return true;
    case WireKind::kControl: understood = number == 0 && handle_control(body); break;
    case WireKind::kBye:
      lane.bye_came = true;
      // Straight to the one who leaves: it waits for this answer.
      send(lane, lane.once[2], WireKind::kByeSeen, "");
      host_.changed();
      break;
    case WireKind::kByeSeen:
      lane.bye_seen = true;
      host_.changed();
      break;
    case WireKind::kReady:
      ready_ = true;
      host_.changed();
      break;
    case WireKind::kHello: return false;
  }
  post(lane, at);
  flush();
  return understood;
}

bool Channel::note_counts(std::size_t number, const WireHead& head) {
  Lane& lane = lanes_[number];
  if (head.released > lane.sent || head.controls_seen > controls_sent_) return false;
  if (head.released > lane.given_back) {
    lane.given_back = head.released;
    host_.changed();
  }
  controls_seen_ = std::max(controls_seen_, head.controls_seen);
  return true;
}

bool Channel::handle_control(std::string_view body) {
  const auto control = decode_control(body);
  if (!control || control->released.size() != lanes_.size()) return false;
  ++controls_came_;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (control->released[i] > lanes_[i].sent) return false;
    lanes_[i].given_back = std::max(lanes_[i].given_back, control->released[i]);
  }
  host_.told(peer_, *control);
  host_.changed();
  return true;
}

}  // namespace convoy::comm

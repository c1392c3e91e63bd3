#include "convoy/comm/openmpi/rank_talk.h"

#include <algorithm>
#include <utility>

#include "convoy/comm/openmpi/mpi_message.h"

namespace convoy::comm {
namespace {

// A line that changes all the time is told this often, and a rank that is in no operation polls so often at most.
constexpr Duration kLinePause = std::chrono::milliseconds(25);
// Control messages to one peer that MPI has not let go of; later ones tell more in one.
constexpr std::size_t kWindow = 4;

}  // namespace

RankTalk::RankTalk(MpiLink& link, int rank, std::vector<ProcessWatch> watches)
    : link_(link),
      rank_(rank),
      board_(
          static_cast<int>(watches.size()), rank, [this](const auto& operation) { tell_enter(operation); },
          [this] { tell_line(); }) {
  MutexLock lock(mutex_);
  for (ProcessWatch& watch : watches) peers_.emplace_back().watch = std::move(watch);
}

bool RankTalk::poll() {
  MutexLock lock(mutex_);
  throw_if_failed();
  return move();
}

bool RankTalk::move() {
  polled_ = system_clock().now();
  const bool moved = link_.progress();
  for (int from = 0; moved && from < size(); ++from) {
    while (auto block = link_.receive(from, MpiLane::kControl)) {
      handle(from, *block);
      link_.give(std::move(*block));
    }
  }
  if (moved) wake();
  flush_all();
  return moved;
}

void RankTalk::handle(int from, const MpiBlock& block) {
  Peer& peer = this->peer(from);
  const auto head = read_message(block);
  switch (head ? head->kind : WireKind::kHello) {
    case WireKind::kControl: {
      const auto control = decode_control(
          {reinterpret_cast<const char*>(payload_of(block)), static_cast<std::size_t>(head->header.bytes)});
      peer.distrusted = peer.distrusted || !control;
      if (control) board_.hear(from, *control);
      if (control && control->notice && !notice_) notice_ = control->notice;
      break;
    }
    case WireKind::kReady: peer.ready = true; break;
    case WireKind::kBye:
      peer.bye_came = true;
      // Straight to the one who leaves: it waits for this answer, and nothing is told to it after that.
      say(from, WireKind::kByeSeen);
      break;
    case WireKind::kByeSeen: peer.bye_seen = true; break;
    default: peer.distrusted = true;
  }
}

void RankTalk::say(int to, WireKind kind, std::string_view body) {
  MessageHeader header;
  header.bytes = body.size();
  link_.send(to, MpiLane::kControl, make_message(link_, kind, header, body.data()));
}

void RankTalk::flush_all() {
  for (int to = 0; to < size(); ++to) flush(to);
}

void RankTalk::flush(int to) {
  Peer& peer = this->peer(to);
  if (to == rank_ || peer.bye_came || peer.bye_said) return;
  const bool line = peer.line_due && polled_ - peer.line_told >= kLinePause;
  if (!line && !peer.notice_due && peer.entered.empty()) return;
  if (link_.sending(to, MpiLane::kControl) >= kWindow) return;
  Control control = board_.describe();
  control.entered = std::exchange(peer.entered, {});
  if (peer.notice_due) control.notice = own_notice_;
  peer.notice_due = peer.line_due = false;
  peer.line_told = polled_;
  say(to, WireKind::kControl, encode(control));
}

// Keeps what MPI fails with until the next call that may throw it.
void RankTalk::attempt(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    MutexLock lock(mutex_);
    if (!failure_) failure_ = error;
    wake();
  }
}

void RankTalk::throw_if_failed() {
  if (failure_) throw Error(failure_->code(), failure_->message());
}

void RankTalk::tell_enter(const observe::BoardOperation& operation) {
  attempt([&] {
    MutexLock lock(mutex_);
    for (Peer& peer : peers_) {
      peer.entered.push_back(operation);
      // Older ones are forgotten by every board.
      if (peer.entered.size() > observe::ProgressBoard::kHistory) peer.entered.erase(peer.entered.begin());
    }
    flush_all();
  });
}

void RankTalk::tell_line() {
  attempt([&] {
    MutexLock lock(mutex_);
    for (Peer& peer : peers_) peer.line_due = true;
    if (!failure_ && system_clock().now() - polled_ >= kLinePause) move();
  });
}

void RankTalk::raise_abort(const AbortNotice& notice) {
  attempt([&] {
    MutexLock lock(mutex_);
    if (!notice_) notice_ = notice;
    if (!own_notice_) own_notice_ = notice;
    for (Peer& peer : peers_) peer.notice_due = true;
    wake();
    flush_all();
  });
}

std::optional<AbortNotice> RankTalk::abort_notice() const {
  MutexLock lock(mutex_);
  return notice_;
}

bool RankTalk::all_told() {
  MutexLock lock(mutex_);
  for (int to = 0; to < size(); ++to) {
    Peer& peer = this->peer(to);
    if (to == rank_ || peer.bye_came || peer.watch.ended()) continue;
    if (peer.notice_due || link_.sending(to, MpiLane::kControl) > 0) return false;
  }
  return true;
}

void RankTalk::say_ready() {
  MutexLock lock(mutex_);
  for (int to = 0; to < size(); ++to) {
    if (to != rank_) say(to, WireKind::kReady);
  }
}

bool RankTalk::ready(int peer) const {
  MutexLock lock(mutex_);
  return this->peer(peer).ready;
}

bool RankTalk::left(int peer) const {
  MutexLock lock(mutex_);
  return this->peer(peer).bye_came;
}

std::optional<std::string> RankTalk::lost(int peer) {
  MutexLock lock(mutex_);
  Peer& other = this->peer(peer);
  if (other.distrusted) return "it sends what is no message";
  const bool ended = other.watch.ended();
  // What it said before its end.
  if (ended && !failure_) move();
  if (other.bye_came) return "it has left the group";
  if (ended) return "its process has ended";
  return std::nullopt;
}

void RankTalk::distrust(int peer) {
  MutexLock lock(mutex_);
  this->peer(peer).distrusted = true;
}

// An abort notice that came from another rank is handed on before the farewell, as over Gloo: else a peer that has not
// got it yet would blame this rank.
void RankTalk::hand_on_notice() {
  if (!notice_ || own_notice_) return;
  own_notice_ = notice_;
  for (Peer& peer : peers_) peer.notice_due = true;
  flush_all();
}

bool RankTalk::say_bye() {
  MutexLock lock(mutex_);
  throw_if_failed();
  hand_on_notice();
  bool over = true;
  for (int to = 0; to < size(); ++to) {
    Peer& peer = this->peer(to);
    if (to == rank_) continue;
    const bool gone = peer.bye_came || peer.watch.ended();
    if (!peer.bye_said && !gone && !peer.notice_due && peer.entered.empty()) {
      say(to, WireKind::kBye);
      peer.bye_said = true;
    }
    over = over && (peer.bye_said ? peer.bye_seen || peer.watch.ended() : gone);
  }
  return over;
}

bool RankTalk::parted() const {
  MutexLock lock(mutex_);
  for (int from = 0; from < board_.ranks(); ++from) {
    const Peer& other = peer(from);
    if (from != rank_ && !(other.bye_said ? other.bye_seen : other.bye_came)) return false;
  }
  return true;
}

}  // namespace convoy::comm

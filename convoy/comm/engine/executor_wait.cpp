// Executor: entering together, waiting for others, and saying who is to blame when that takes too long.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "convoy/comm/engine/executor.h"

namespace convoy::comm {
namespace {

// Waits are cut into slices so that the heartbeat goes on and a peer's end is seen.
constexpr Duration kSlice = std::chrono::milliseconds(50);
constexpr Duration kBeat = std::chrono::milliseconds(100);

std::string short_name(const observe::BoardOperation& operation, DType dtype) {
  const std::string_view name(operation.name.data());
  if (name == "barrier") return fmt::format("{} #{}", name, operation.sequence);
  return fmt::format("{} #{} of {} {}", name, operation.sequence, operation.elements, to_string(dtype));
}

}  // namespace

void Executor::agree() {
  observe::ProgressBoard& board = transport_.board();
  last_beat_ = TimePoint();
  beat();
  board.enter(rank_, operation_);
  if (transport_.size() == 1) return;
  if (!rounds().empty() && !is_native(*collective_.schedule)) {
    // Messages of the first round are on their way while ranks are still entering. Nobody takes them before all agree.
    queue_messages(rounds().front());
    offer_sends();
  }
  transport_.wake_all();
  while (true) {
    const std::uint32_t seen = transport_.signal();
    const std::vector<int> missing = not_entered();
    if (missing.empty()) break;
    offer_sends();
    block(seen, missing);
  }
  check_agreement();
  board.update(rank_, observe::BoardPhase::kMoving, 0, -1);
  if (options_.recorder != nullptr) options_.recorder->agreed(operation_.sequence, system_clock().now());
}

std::vector<int> Executor::not_entered() {
  std::vector<int> missing;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank != rank_ && transport_.board().line(rank).sequence < operation_.sequence) missing.push_back(rank);
  }
  return missing;
}

void Executor::check_agreement() {
  for (int rank = 0; rank < transport_.size(); ++rank) {
    const auto other = transport_.board().operation(rank, operation_.sequence);
    if (!other || other->agrees_with(operation_)) continue;
    const std::string mine = operation_.str();
    const std::string theirs = other->str();
    fail(ErrorCode::kDesync,
         fmt::format("the ranks disagree about operation #{}: rank {} entered {}, rank {} entered {}{}",
                     operation_.sequence, rank_, mine, rank, theirs,
                     mine == theirs ? " with another layout or algorithm, or another wire format" : ""),
         rank);
  }
}

// What the ranks mean is compared only now, when it takes long: a rank that shows another fingerprint, or nothing, has
// entered something else or has not come yet.
void Executor::wait_for_published(SmallReducer& reducer) {
  const SmallReduce operation = small_operation();
  last_beat_ = TimePoint();
  beat();
  transport_.board().enter(rank_, operation_);
  transport_.wake_all();
  struct Watch {
    explicit Watch(Transport& transport) : transport_(transport) { transport.watch_published(true); }
    ~Watch() { transport_.watch_published(false); }
    Transport& transport_;
  } watch(transport_);
  while (true) {
    const std::uint32_t seen = transport_.signal();
    const int missing = reducer.missing(operation);
    if (missing < 0) return;
    check_agreement();
    block(seen, {missing});
  }
}

void Executor::wait_until_writable(const std::vector<Extent>& pieces) {
  forget_sent();
  if (conflicts(pieces, true)) own_everything_held();
  while (true) {
    const std::uint32_t seen = transport_.signal();
    forget_sent();
    if (!conflicts(pieces, false)) return;
    std::vector<int> peers;
    for (const Outstanding& send : outstanding_) peers.push_back(send.peer);
    block(seen, peers);
  }
}

void Executor::wait_until_all_sent() {
  while (true) {
    const std::uint32_t seen = transport_.signal();
    forget_sent();
    if (outstanding_.empty()) return;
    std::vector<int> peers;
    for (const Outstanding& send : outstanding_) peers.push_back(send.peer);
    block(seen, peers);
  }
}

void Executor::look_up() {
  const auto notice = transport_.abort_notice();
  if (notice) {
    // Ranks that disagree each say so in their own words.
    if (notice->code == ErrorCode::kDesync) check_agreement();
    throw_if_aborted();
  }
  beat();
}

void Executor::throw_if_aborted() const {
  const auto notice = transport_.abort_notice();
  if (!notice) return;
  // A disagreement is everybody's error. Where the news of it overtakes the other rank's line on the board, this rank
  // has not seen both sides, but the notice names them.
  fail(notice->code == ErrorCode::kDesync ? ErrorCode::kDesync : ErrorCode::kAborted,
       fmt::format("{} was given up because rank {} failed first: {}", short_name(operation_, collective_.dtype),
                   notice->rank, notice->message),
       notice->rank);
}

void Executor::block(std::uint32_t seen, const std::vector<int>& waited_for) {
  look_up();
  for (const int rank : waited_for) {
    const auto why = transport_.lost(rank);
    if (!why) continue;
    // What it sent before its end may have come between the last look and the news of its end: look once more.
    if (!peer(rank).seen_lost) {
      peer(rank).seen_lost = true;
      return;
    }
    fail(ErrorCode::kPeerLost,
         fmt::format("{} cannot be completed: rank {} was lost: {}", short_name(operation_, collective_.dtype), rank,
                     *why),
         rank);
  }
  if (deadline_.expired()) fail_timeout();
  observe::ProgressBoard& board = transport_.board();
  const observe::BoardPhase phase = board.line(rank_).phase;
  const int shown = phase == observe::BoardPhase::kMoving && !waited_for.empty() ? waited_for.front() : -1;
  board.update(rank_, phase, messages_, shown);
  transport_.wait(seen, std::min(kSlice, deadline_.remaining()));
  beat();
  if (shown >= 0) board.update(rank_, phase, messages_, -1);
}

void Executor::beat() {
  const TimePoint now = system_clock().now();
  if (last_beat_ != TimePoint() && now - last_beat_ < kBeat) return;
  last_beat_ = now;
  transport_.board().beat(rank_, std::chrono::duration_cast<Duration>(now.time_since_epoch()).count(), ::getpid());
}

void Executor::fail_timeout() {
  check_agreement();
  const TimePoint now = system_clock().now();
  const std::int64_t now_ns = std::chrono::duration_cast<Duration>(now.time_since_epoch()).count();
  const observe::Culprits culprits =
      observe::find_culprits(transport_.board(), rank_, operation_.sequence, now_ns, options_.silent_after);
  fail(ErrorCode::kTimeout,
       fmt::format("{} gave up after {:.1f} s: {}", short_name(operation_, collective_.dtype), to_seconds(now - began_),
                   culprits.reason),
       culprits.ranks.empty() ? -1 : culprits.ranks.front());
}

void Executor::fail(ErrorCode code, const std::string& message, int peer) const {
  ErrorContext context;
  context.global_rank = rank_;
  if (peer >= 0) context.peer = peer;
  context.group = options_.group;
  context.operation = operation_.name.data();
  context.sequence = operation_.sequence;
  throw Error(code, message, context);
}

}  // namespace convoy::comm

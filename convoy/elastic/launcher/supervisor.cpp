// Waiting for ranks, their output, their events and for signals, all in one poll loop.
//
// Words: a job is *running* until a rank fails; then it *settles* (the others may still say what they saw and end), is
// *terminated* (SIGTERM to every process group) and at last *killed*. A signal to the launcher terminates it at once, a
// second one kills it.
#include "convoy/elastic/launcher/supervisor.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/elastic/launcher/signal_trap.h"
#include "convoy/elastic/launcher/verdict.h"

namespace convoy::elastic {
namespace {

using std::chrono::milliseconds;

// Without a pidfd the end of a process is only seen by looking.
constexpr Duration kLookEvery = milliseconds(10);
constexpr Duration kLongestWait = milliseconds(1000);
// A killed process is gone at once unless the kernel holds it in a device.
constexpr Duration kKillLimit = std::chrono::seconds(10);
// A process that left its rank's group may hold a pipe open for ever.
constexpr Duration kDrainLimit = milliseconds(300);

}  // namespace

Supervisor::Supervisor(const LaunchOptions& options)
    : options_(options), guard_(options.ranks), output_sink_(options.output_fd), error_sink_(STDERR_FILENO) {}

Supervisor::~Supervisor() {
  for (const Rank& rank : ranks_) {
    if (rank.running) ::kill(-rank.process.pid, SIGKILL);
  }
  const Deadline deadline(system_clock(), kKillLimit);
  for (const Rank& rank : ranks_) {
    while (rank.running && ::waitpid(rank.process.pid, nullptr, WNOHANG) == 0 && !deadline.expired()) {
      system_clock().sleep_for(milliseconds(1));
    }
  }
}

void Supervisor::start(const RankCommand& command) {
  const int number = static_cast<int>(ranks_.size());
  OutputTargets targets;
  if (!options_.log_folder.empty()) targets.log_path = fmt::format("{}/rank-{}.log", options_.log_folder, number);
  if (options_.pass_through) {
    targets.output = &output_sink_;
    targets.errors = &error_sink_;
    targets.prefix = fmt::format("[rank {}] ", number);
  }
  Rank rank;
  rank.output = std::make_unique<RankOutput>(std::move(targets));
  rank.process = start_rank_process(command);
  guard_.watch(rank.process.pid);
  rank.outcome.pid = rank.process.pid;
  ranks_.push_back(std::move(rank));
  if (options_.on_start) options_.on_start(number, ranks_.back().process.pid);
}

LaunchResult Supervisor::run() {
  const TimePoint begin = system_clock().now();
  while (any_running()) {
    take_signals();
    advance_stage();
    wait_and_act(watches(), until_next_stage());
    look_for_ended();
  }
  drain();
  LaunchResult result;
  result.interrupted_by = interrupted_by_;
  result.elapsed = system_clock().now() - begin;
  for (Rank& rank : ranks_) {
    rank.outcome.last_lines = rank.output->last_lines();
    result.ranks.push_back(std::move(rank.outcome));
  }
  judge(result);
  return result;
}

bool Supervisor::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
}

bool Supervisor::any_open() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.process.output.valid() || rank.process.errors.valid() || rank.process.events.valid();
  });
}

std::vector<Supervisor::Watch> Supervisor::watches() {
  std::vector<Watch> watched;
  const auto watch = [&](int fd, short events, std::function<void()> act) {
    if (fd >= 0) watched.push_back({pollfd{fd, events, 0}, std::move(act)});
  };
  for (int number = 0; number < static_cast<int>(ranks_.size()); ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.running) watch(rank.process.pidfd.get(), POLLIN, [] {});  // look_for_ended follows
    watch(rank.process.events.get(), POLLIN, [this, number] { read_events(number); });
    // While a reader of ours is slow, ranks wait in their own pipes.
    RankOutput* output = rank.output.get();
    OwnedFd* out = &rank.process.output;
    OwnedFd* err = &rank.process.errors;
    const auto take_out = [this, output, out] {
      read_pipe(*out, [output](std::string_view bytes) { output->take_output(bytes); });
    };
    const auto take_err = [this, output, err] {
      read_pipe(*err, [output](std::string_view bytes) { output->take_errors(bytes); });
    };
    if (!output_sink_.full()) watch(out->get(), POLLIN, take_out);
    if (!error_sink_.full()) watch(err->get(), POLLIN, take_err);
  }
  if (options_.signals != nullptr) watch(options_.signals->fd(), POLLIN, [this] { take_signals(); });
  for (LineSink* sink : {&output_sink_, &error_sink_}) {
    if (sink->waiting()) watch(sink->fd(), POLLOUT, [sink] { sink->pump(); });
  }
  return watched;
}

void Supervisor::wait_and_act(std::vector<Watch> watched, Duration limit) {
  std::vector<pollfd> entries;
  for (const Watch& watch : watched) entries.push_back(watch.entry);
  // Rounded up, so that a wait never ends just before the moment that it waits for.
  const auto wait_ms = std::chrono::ceil<milliseconds>(limit).count();
  if (::poll(entries.data(), entries.size(), static_cast<int>(wait_ms)) <= 0) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents != 0) watched[i].act();
  }
}

Duration Supervisor::until_next_stage() const {
  Duration wait = kLongestWait;
  for (const Rank& rank : ranks_) {
    if (rank.running && !rank.process.pidfd.valid()) wait = kLookEvery;
  }
  return stage_end_ ? std::min(wait, stage_end_->remaining()) : wait;
}

void Supervisor::read_pipe(OwnedFd& pipe, const std::function<void(std::string_view)>& take) {
  if (!pipe.valid()) return;
  std::array<char, 65536> bytes;
  const ssize_t got = ::read(pipe.get(), bytes.data(), bytes.size());
  if (got > 0) take(std::string_view(bytes.data(), static_cast<std::size_t>(got)));
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pipe.reset();
}

void Supervisor::read_events(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const auto take_line = [this, number](std::string_view line) { take_event(number, line); };
  read_pipe(rank.process.events, [&](std::string_view bytes) { rank.event_lines.feed(bytes, take_line); });
}

// Reads what an ended rank left in its pipes: a pipe holds at most 64 KiB here, events far less.
void Supervisor::read_all(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  for (int round = 0; round < 16; ++round) {
    read_events(number);
    read_pipe(rank.process.output, [&](std::string_view bytes) { rank.output->take_output(bytes); });
    read_pipe(rank.process.errors, [&](std::string_view bytes) { rank.output->take_errors(bytes); });
  }
}

void Supervisor::take_event(int number, std::string_view line) {
  const std::optional<RankEvent> event = parse_rank_event(line);
  if (!event) return;
  RankOutcome& outcome = ranks_[static_cast<std::size_t>(number)].outcome;
  if (event->kind == RankEventKind::kProgress) outcome.last_step = event->step;
  if (event->kind == RankEventKind::kError && !outcome.error) {
    outcome.error = RankError{event->code, event->text, next_order_++};
  }
  if (options_.on_event) options_.on_event(number, *event);
}

void Supervisor::take_signals() {
  if (options_.signals == nullptr) return;
  while (const std::optional<int> signal = options_.signals->take()) {
    const bool again = interrupted_by_ != 0;
    if (!again) interrupted_by_ = *signal;
    if (stage_ == Stage::kKilling) continue;
    if (again) {
      enter(Stage::kKilling, kKillLimit);
      signal_running(SIGKILL);
    } else if (stage_ != Stage::kTerminating) {
      enter(Stage::kTerminating, options_.terminate);
      signal_running(SIGTERM);
    }
  }
}

void Supervisor::look_for_ended() {
  for (int number = 0; number < static_cast<int>(ranks_.size()); ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (!rank.running) continue;
    siginfo_t info{};
    const auto id = static_cast<id_t>(rank.process.pid);
    const int looked = ::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT);
    if (looked == 0 && info.si_pid == 0) continue;
    if (looked != 0 && errno == EINTR) continue;
    // What the rank started itself goes with it. It is not reaped yet, so the group's number is still its own.
    ::kill(-rank.process.pid, SIGKILL);
    guard_.forget(rank.process.pid);
    while (::waitid(P_PID, id, &info, WEXITED) != 0 && errno == EINTR) {
    }
    note_ended(number, info.si_code, info.si_status);
  }
}

void Supervisor::note_ended(int number, int code, int status) {
  read_all(number);
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  rank.running = false;
  rank.process.pidfd.reset();
  const bool asked = stage_ == Stage::kTerminating || stage_ == Stage::kKilling;
  RankOutcome& outcome = rank.outcome;
  if (code == CLD_EXITED) {
    outcome.status = status;
  } else {
    outcome.signal = status;
  }
  const bool other_signal = outcome.signal && *outcome.signal != SIGTERM && *outcome.signal != SIGKILL;
  outcome.stopped = asked && !outcome.ok() && !other_signal;
  outcome.order = next_order_++;
  if (!outcome.ok() && stage_ == Stage::kRunning) enter(Stage::kSettling, options_.settle);
}

void Supervisor::advance_stage() {
  if (!stage_end_ || !stage_end_->expired()) return;
  if (stage_ == Stage::kSettling) {
    enter(Stage::kTerminating, options_.terminate);
    signal_running(SIGTERM);
  } else if (stage_ == Stage::kTerminating) {
    enter(Stage::kKilling, kKillLimit);
    signal_running(SIGKILL);
  } else {
    throw Error(ErrorCode::kTimeout, "a killed rank does not end: the kernel holds its process");
  }
}

void Supervisor::enter(Stage stage, Duration limit) {
  stage_ = stage;
  stage_end_.emplace(system_clock(), limit);
}

void Supervisor::signal_running(int signal) {
  for (const Rank& rank : ranks_) {
    if (!rank.running) continue;
    ::kill(-rank.process.pid, signal);
    // A stopped process would not see SIGTERM.
    if (signal == SIGTERM) ::kill(-rank.process.pid, SIGCONT);
  }
}

// All ranks ended: takes what is left in the pipes, then waits for our own readers (a pager) or a signal.
void Supervisor::drain() {
  const Deadline deadline(system_clock(), kDrainLimit);
  while (any_open() && !deadline.expired()) {
    for (int number = 0; number < static_cast<int>(ranks_.size()); ++number) read_all(number);
    if (any_open()) wait_and_act(watches(), std::min<Duration>(deadline.remaining(), kLookEvery));
  }
  for (int number = 0; number < static_cast<int>(ranks_.size()); ++number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    rank.output->finish();
    rank.event_lines.finish([this, number](std::string_view line) { take_event(number, line); });
  }
  while ((output_sink_.waiting() || error_sink_.waiting()) && interrupted_by_ == 0) {
    wait_and_act(watches(), kLongestWait);
  }
}

}  // namespace convoy::elastic

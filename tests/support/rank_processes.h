// Ranks as processes: forked by the test, each in a network namespace where one is given, and heard through pipes.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/comm/gloo/gloo_transport.h"
#include "convoy/comm/group.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/rendezvous/store_server.h"
#include "convoy/comm/shared_memory/shared_memory_transport.h"
#include "tests/support/namespaces.h"

namespace convoy::testing {

/// How the ranks are started.
struct RankProcessOptions {
  /// "shared_memory" or "gloo".
  std::string transport = "shared_memory";
  int ranks = 2;
  /// The group's.
  Duration timeout = std::chrono::seconds(20);
  /// The namespace of each rank; empty: they stay in this one.
  std::vector<std::string> namespaces;
  /// Of gloo; empty: the loopback interface.
  std::vector<std::string> interfaces;
  /// After this time a rank is ended, whatever it does.
  unsigned limit_s = 60;
  /// Whether the ranks wait for release() before they meet, so that more can be forked.
  bool held = false;
};

/// Returns a rank's end of a group over the chosen transport; shared payloads lie in the arena, or in the process's own.
inline std::unique_ptr<comm::Transport> transport_of(const RankProcessOptions& options, comm::Store& store, int rank,
                                                     comm::SharedArena* arena) {
  if (options.transport == "gloo") {
    comm::GlooOptions gloo;
    gloo.limit = std::chrono::seconds(20);
    gloo.interfaces = options.interfaces;
    return comm::make_gloo_transport(store, rank, options.ranks, gloo);
  }
  comm::SharedMemoryOptions shared;
  shared.arena = arena;
  shared.limit = std::chrono::seconds(20);
  return comm::make_shared_memory_transport(store, rank, options.ranks, shared);
}

/// What a rank's body works with.
struct RankContext {
  comm::Group& group;
  /// The group's, for its counts.
  comm::Transport& transport;
  comm::Store& store;
  comm::SharedArena& arena;
  int rank = 0;
};

/// What a rank's process tells the test: how its body ended, and after how long.
struct RankEnding {
  /// The code of an Error; 100 without one, -2 when the process ended without a word.
  int code = -1;
  double seconds = 0.0;
  char message[600] = {};
};

/// Ranks as processes. They are forked while this process has no other thread, and meet in a store that is served
/// afterwards, by a thread in this process's namespace.
class RankProcesses {
 public:
  /// What a rank does.
  using Body = std::function<void(const RankContext& context)>;

  /// Forks the ranks, and releases them unless they are held.
  RankProcesses(const RankProcessOptions& options, const Body& body) {
    for (int rank = 0; rank < options.ranks; ++rank) {
      int result[2];
      int gate[2];
      if (::pipe2(result, O_CLOEXEC) != 0 || ::pipe2(gate, O_CLOEXEC) != 0) throw Error(ErrorCode::kIo, "no pipe");
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::close(result[0]);
        ::close(gate[1]);
        run_child(options, rank, body, gate[0], result[1]);
      }
      ::close(result[1]);
      ::close(gate[0]);
      pids_.push_back(pid);
      results_.push_back(result[0]);
      gates_.push_back(gate[1]);
    }
    if (!options.held) release();
  }
  /// Serves the store and lets the ranks meet in it.
  void release() {
    server_ = std::make_unique<comm::StoreServer>();
    const std::string invitation = server_->address() + " " + server_->token() + "\n";
    for (const int gate : std::exchange(gates_, {})) {
      const ssize_t wrote = ::write(gate, invitation.data(), invitation.size());
      ::close(gate);
      CONVOY_CHECK(wrote == static_cast<ssize_t>(invitation.size()), "a rank hears where the store is");
    }
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : pids_) {
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
    for (const int result : results_) ::close(result);
    for (const int gate : gates_) ::close(gate);
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /// Sends a rank a signal.
  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }
  /// Returns the store in which the ranks met.
  comm::Store& store() { return server_->store(); }
  /// Waits until all ranks have formed their group; false when they do not come.
  bool all_started() {
    const Deadline deadline(system_clock(), std::chrono::seconds(20));
    while (store().add("started", 0) < static_cast<std::int64_t>(pids_.size())) {
      if (deadline.expired()) return false;
      system_clock().sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  /// Waits for a rank's end and returns what it said.
  RankEnding ending(int rank) {
    RankEnding ending;
    const auto r = static_cast<std::size_t>(rank);
    const ssize_t got = ::read(results_[r], &ending, sizeof(ending));
    if (got != static_cast<ssize_t>(sizeof(ending))) ending.code = -2;
    ::waitpid(pids_[r], nullptr, 0);
    pids_[r] = 0;
    return ending;
  }

 private:
  static void run_rank(const RankProcessOptions& options, int rank, const Body& body, const std::string& invitation) {
    const std::size_t space = invitation.find(' ');
    // The connection to the store stays in the namespace in which it was made.
    comm::StoreClient store(invitation.substr(0, space), invitation.substr(space + 1, 32), std::chrono::seconds(10));
    if (!options.namespaces.empty()) {
      CONVOY_CHECK(TwoNamespaces::enter(options.namespaces[static_cast<std::size_t>(rank)]),
                   "a rank has its namespace");
    }
    comm::SharedArena arena(std::size_t{64} << 20);
    comm::GroupOptions group_options;
    group_options.timeout = options.timeout;
    auto transport = transport_of(options, store, rank, &arena);
    comm::Transport& counted = *transport;
    const auto group = comm::make_group(std::move(transport), group_options);
    store.add("started", 1);
    body(RankContext{*group, counted, store, arena, rank});
  }

  [[noreturn]] static void run_child(const RankProcessOptions& options, int rank, const Body& body, int gate,
                                     int result) {
    ::alarm(options.limit_s);
    RankEnding ending;
    const TimePoint begin = system_clock().now();
    try {
      char text[300] = {};
      if (::read(gate, text, sizeof(text) - 1) <= 0) ::_exit(1);
      run_rank(options, rank, body, text);
      ending.code = 100;
    } catch (const Error& error) {
      ending.code = static_cast<int>(error.code());
      std::strncpy(ending.message, error.message().c_str(), sizeof(ending.message) - 1);
    }
    ending.seconds = to_seconds(system_clock().now() - begin);
    const ssize_t wrote = ::write(result, &ending, sizeof(ending));
    ::_exit(wrote == static_cast<ssize_t>(sizeof(ending)) ? 0 : 1);
  }

  std::vector<pid_t> pids_;
  std::vector<int> results_;
  std::vector<int> gates_;
  std::unique_ptr<comm::StoreServer> server_;
};

}  // namespace convoy::testing

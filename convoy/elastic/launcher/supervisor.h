// The loop that watches over the ranks of one job.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/elastic/launcher/launcher.h"
#include "convoy/elastic/launcher/process_guard.h"
#include "convoy/elastic/launcher/rank_output.h"
#include "convoy/elastic/launcher/rank_process.h"

namespace convoy::elastic {

/// Owns the running ranks of one job. Its destructor kills and reaps those that still run.
/// Threads:    one
class Supervisor {
 public:
  /// Watches over nobody yet.
  /// Ownership:  borrows the options
  /// Errors:     as ProcessGuard
  explicit Supervisor(const LaunchOptions& options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts the next rank.
  /// Errors:     as start_rank_process
  void start(const RankCommand& command);
  /// Watches until all ranks ended.
  LaunchResult run();

 private:
  // What is done about ranks that still run.
  enum class Stage { kRunning, kSettling, kTerminating, kKilling };

  struct Rank {
    RankProcess process;
    std::unique_ptr<RankOutput> output;
    LineSplitter event_lines;
    RankOutcome outcome;
    bool running = true;
  };

  // A descriptor to wait for, and what to do when it is ready.
  struct Watch {
    pollfd entry;
    std::function<void()> act;
  };

  bool any_running() const;
  bool any_open() const;
  std::vector<Watch> watches();
  void wait_and_act(std::vector<Watch> watched, Duration limit);
  Duration until_next_stage() const;
  void read_pipe(OwnedFd& pipe, const std::function<void(std::string_view)>& take);
  void read_events(int number);
  void read_all(int number);
  void take_event(int number, std::string_view line);
  void take_signals();
  void look_for_ended();
  void note_ended(int number, int code, int status);
  void advance_stage();
  void enter(Stage stage, Duration limit);
  void signal_running(int signal);
  void drain();

  const LaunchOptions& options_;
  ProcessGuard guard_;
  LineSink output_sink_;
  LineSink error_sink_;
  std::vector<Rank> ranks_;
  Stage stage_ = Stage::kRunning;
  std::optional<Deadline> stage_end_;
  std::uint64_t next_order_ = 1;
  int interrupted_by_ = 0;
};

}  // namespace convoy::elastic

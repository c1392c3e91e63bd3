// What ranks print: cut into lines, kept in a log file, passed on with the rank's name, the last lines remembered.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/elastic/launcher/owned_fd.h"

namespace convoy::elastic {

/// Cuts a stream of bytes into lines. A line longer than kLongestLine is handed on in pieces.
class LineSplitter {
 public:
  /// The longest line that is kept whole, in bytes.
  static constexpr std::size_t kLongestLine = 1 << 20;
  /// Takes each whole line, without its line break.
  using Take = std::function<void(std::string_view line)>;
  /// Adds bytes and hands on the lines that they complete.
  void feed(std::string_view bytes, const Take& take);
  /// Hands on what is left after the last line break, if anything is.
  void finish(const Take& take);

 private:
  std::string rest_;
};

/// Writes lines to a descriptor of ours that may be slow (a pipe to a pager) without ever waiting for it.
/// Ownership:  borrows the descriptor
class LineSink {
 public:
  /// Writes to this descriptor.
  explicit LineSink(int fd) : fd_(fd) {}
  /// Adds a line and writes what the descriptor takes now.
  void add(std::string_view prefix, std::string_view line);
  /// Writes what the descriptor takes now. A reader that went away is forgotten, and all lines with it.
  void pump();
  /// Returns whether lines wait for the descriptor.
  bool waiting() const { return !pending_.empty(); }
  /// Returns whether so much waits that ranks should be made to wait too.
  bool full() const { return pending_.size() > kFull; }
  /// Returns the descriptor.
  int fd() const { return fd_; }

 private:
  static constexpr std::size_t kFull = 1 << 20;

  int fd_;
  bool closed_ = false;
  std::string pending_;
};

/// Where the lines of one rank go.
struct OutputTargets {
  /// The log file that lines are appended to; "" for none.
  std::string log_path;
  /// Where lines of standard output and standard error are passed on; null for nowhere.
  LineSink* output = nullptr;
  LineSink* errors = nullptr;
  /// Stands before each line that is passed on.
  std::string prefix;
};

/// The output of one rank.
class RankOutput {
 public:
  /// How many lines are remembered.
  static constexpr std::size_t kLastLines = 15;
  /// Opens the log file.
  /// Errors:     kIo naming the file
  explicit RankOutput(OutputTargets targets);
  /// Takes bytes of standard output.
  void take_output(std::string_view bytes);
  /// Takes bytes of standard error.
  void take_errors(std::string_view bytes);
  /// Takes what the rank left unfinished.
  void finish();
  /// Returns the last lines, oldest first, over-long ones cut.
  std::vector<std::string> last_lines() const { return {last_.begin(), last_.end()}; }

 private:
  void take(std::string_view line, LineSink* sink);

  OutputTargets targets_;
  OwnedFd log_;
  LineSplitter output_;
  LineSplitter errors_;
  std::deque<std::string> last_;
};

}  // namespace convoy::elastic

// Lines of ranks on their way to files and people.
#include "convoy/elastic/launcher/rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::elastic {
namespace {

constexpr std::size_t kLongestRemembered = 400;

// Appends to a regular file; a full disk loses log lines, never the run.
void append_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

bool writable_now(int fd) {
  pollfd entry{fd, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace

void LineSplitter::feed(std::string_view bytes, const Take& take) {
  while (true) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    if (rest_.empty()) {
      take(bytes.substr(0, end));
    } else {
      rest_ += bytes.substr(0, end);
      take(rest_);
      rest_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  rest_ += bytes;
  if (rest_.size() >= kLongestLine) finish(take);
}

void LineSplitter::finish(const Take& take) {
  if (!rest_.empty()) take(rest_);
  rest_.clear();
}

void LineSink::add(std::string_view prefix, std::string_view line) {
  if (closed_) return;
  pending_ += prefix;
  pending_ += line;
  pending_ += '\n';
  pump();
}

void LineSink::pump() {
  std::size_t done = 0;
  while (done < pending_.size() && writable_now(fd_)) {
    // A pipe that is writable takes PIPE_BUF bytes without blocking, and maybe no more.
    const std::size_t piece = std::min<std::size_t>(pending_.size() - done, PIPE_BUF);
    const ssize_t wrote = ::write(fd_, pending_.data() + done, piece);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (wrote < 0) {
      closed_ = true;
      done = pending_.size();
      break;
    }
    done += static_cast<std::size_t>(wrote);
  }
  pending_.erase(0, done);
}

RankOutput::RankOutput(OutputTargets targets) : targets_(std::move(targets)) {
  if (targets_.log_path.empty()) return;
  log_ = OwnedFd(::open(targets_.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log_.valid()) {
    throw Error(ErrorCode::kIo, fmt::format("cannot open {}: {}", targets_.log_path, std::strerror(errno)));
  }
}

void RankOutput::take_output(std::string_view bytes) {
  output_.feed(bytes, [this](std::string_view line) { take(line, targets_.output); });
}

void RankOutput::take_errors(std::string_view bytes) {
  errors_.feed(bytes, [this](std::string_view line) { take(line, targets_.errors); });
}

void RankOutput::finish() {
  output_.finish([this](std::string_view line) { take(line, targets_.output); });
  errors_.finish([this](std::string_view line) { take(line, targets_.errors); });
}

void RankOutput::take(std::string_view line, LineSink* sink) {
  if (log_.valid()) append_all(log_.get(), fmt::format("{}\n", line));
  if (sink != nullptr) sink->add(targets_.prefix, line);
  last_.emplace_back(line.substr(0, kLongestRemembered));
  if (last_.size() > kLastLines) last_.pop_front();
}

}  // namespace convoy::elastic

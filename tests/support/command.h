// Runs a command as a user would, with a deadline, and keeps what it printed.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "convoy/base/clock.h"

namespace convoy::testing {

/// How a command ended and what it printed.
struct CommandResult {
  /// Its exit status; 128 + signal when a signal ended it; -1 when it was killed at the deadline.
  int status = -1;
  std::string output;
  std::string errors;
  Duration elapsed{};
};

/// Runs a program with arguments and extra environment variables; kills it at the limit.
inline CommandResult run_command(const std::vector<std::string>& arguments,
                                 const std::map<std::string, std::string>& environment = {},
                                 Duration limit = std::chrono::seconds(120)) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const TimePoint begin = system_clock().now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (const auto& variable : environment) ::setenv(variable.first.c_str(), variable.second.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  CommandResult result;
  pollfd watched[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&result.output, &result.errors};
  const Deadline deadline(system_clock(), limit);
  bool killed = false;
  for (int open = 2; open > 0;) {
    ::poll(watched, 2, 100);
    if (deadline.expired() && !killed) {
      ::kill(child, SIGKILL);
      killed = true;
    }
    for (int i = 0; i < 2; ++i) {
      if (watched[i].fd < 0 || (watched[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(watched[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      ::close(watched[i].fd);
      watched[i].fd = -1;
      --open;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  result.elapsed = system_clock().now() - begin;
  if (!killed) result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace convoy::testing

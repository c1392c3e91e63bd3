// Helpers for tests with real processes: scripts, programs beside the test, and who is still alive.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace convoy::testing {

/// Returns a file's text; "" when it is not there.
inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Writes a file, making its folder, and returns its path.
inline std::string write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Writes a shell script that can be run, and returns its path.
inline std::string write_script(const std::string& path, const std::string& body) {
  write_text(path, "#!/bin/sh\n" + body);
  ::chmod(path.c_str(), 0755);
  return path;
}

/// Returns the lines of a text.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Returns a value for the variable CONVOY_TEST_MARKER that no other process has.
inline std::string new_marker() {
  static int next = 0;
  return fmt::format("convoy-{}-{}", ::getpid(), ++next);
}

/// Returns the processes whose environment has CONVOY_TEST_MARKER with this value.
inline std::vector<pid_t> processes_with(const std::string& marker) {
  const std::string entry = '\0' + std::string("CONVOY_TEST_MARKER=") + marker + '\0';
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& folder : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = folder.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string environment = '\0' + read_text(folder.path() / "environ");
    if (environment.find(entry) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

/// Waits until the condition holds, for at most the limit; returns whether it does.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::milliseconds(30000)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// A program that runs beside the test, with its output in files.
class Program {
 public:
  /// Starts it in a working folder with extra variables. Standard output goes to `output_fd` where one is given.
  explicit Program(std::vector<std::string> command, const std::map<std::string, std::string>& variables = {},
                   const std::string& folder = ".", int output_fd = -1)
      : begin_(system_clock().now()) {
    std::vector<char*> arguments;
    for (std::string& text : command) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    // A test program has no other threads here, so the child may use the library.
    for (const auto& variable : variables) ::setenv(variable.first.c_str(), variable.second.c_str(), 1);
    ::dup2(output_fd >= 0 ? output_fd : open_new("out"), STDOUT_FILENO);
    ::dup2(open_new("err"), STDERR_FILENO);
    if (::chdir(folder.c_str()) == 0) ::execvp(arguments[0], arguments.data());
    ::_exit(126);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Sends a signal.
  void signal(int number) const { ::kill(pid_, number); }
  /// Returns what standard output holds by now.
  std::string output() const { return read_text(files_.path() + "/out"); }
  /// Waits for the end; kills the program at the limit.
  CommandResult wait(std::chrono::milliseconds limit = std::chrono::milliseconds(60000)) {
    int status = 0;
    const bool ended = eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit);
    if (!ended) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
    CommandResult result;
    if (ended) result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.output = output();
    result.errors = read_text(files_.path() + "/err");
    result.elapsed = system_clock().now() - begin_;
    return result;
  }

 private:
  int open_new(const char* name) const {
    return ::open((files_.path() + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }

  TemporaryFolder files_;
  pid_t pid_ = -1;
  TimePoint begin_;
};

}  // namespace convoy::testing

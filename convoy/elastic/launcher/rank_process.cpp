// fork and exec of a rank, with everything that may allocate done before the fork.
#include "convoy/elastic/launcher/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/comm/shared_memory/host_memory.h"

namespace convoy::elastic {
namespace {

// All descriptors of a start lie above those that the rank will use, so that moving one never overwrites another.
constexpr int kFirstOwnFd = 16;

const std::string kStateVariable = std::string(comm::kStateFileVariable) + "=";

[[noreturn]] void fail_io(const char* what) {
  const int reason = errno;
  throw Error(ErrorCode::kIo, fmt::format("cannot start a rank: {}: {}", what, std::strerror(reason)));
}

OwnedFd lift(int fd) {
  const OwnedFd low(fd);
  OwnedFd high(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstOwnFd));
  if (!high.valid()) fail_io("no descriptor");
  return high;
}

struct Pipe {
  OwnedFd read;
  OwnedFd write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_io("no pipe");
  OwnedFd write_end(ends[1]);
  Pipe pipe;
  pipe.read = lift(ends[0]);
  pipe.write = lift(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, 0));
  return pipe;
}

void set_nonblocking(const OwnedFd& fd) { ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct ChildSetup {
  const char* program;
  char** arguments;
  char** environment;
  pid_t parent;
  int input;
  int output;
  int errors;
  int events;
  int state;
  int failure;
};

// Runs in the child: only calls that are safe after a fork of a process with threads.
[[noreturn]] void become_rank(const ChildSetup& setup) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != setup.parent) ::_exit(127);  // the launcher ended before the line above could tell us
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &normal, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool placed = ::dup2(setup.input, STDIN_FILENO) >= 0 && ::dup2(setup.output, STDOUT_FILENO) >= 0 &&
                      ::dup2(setup.errors, STDERR_FILENO) >= 0 && ::dup2(setup.events, kEventsFd) >= 0 &&
                      (setup.state < 0 || ::dup2(setup.state, kStateFd) >= 0);
  if (placed) ::execve(setup.program, setup.arguments, setup.environment);
  const int reason = errno;
  [[maybe_unused]] const ssize_t told = ::write(setup.failure, &reason, sizeof reason);
  ::_exit(127);
}

// Returns errno of a failed start, 0 when the program runs (exec closed the pipe).
int wait_for_start(const OwnedFd& failure) {
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof reason) ? reason : 0;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    const char* reason = ::access(name.c_str(), F_OK) == 0 ? "it is not an executable file" : "there is no such file";
    throw Error(ErrorCode::kInvalidArgument, fmt::format("cannot run {}: {}", name, reason));
  }
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!name.empty()) {
    const auto colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_program(candidate)) return candidate;
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("cannot run '{}': no such program in PATH", name));
}

RankProcess start_rank_process(const RankCommand& command) {
  std::vector<std::string> argument_texts = {command.program};
  argument_texts.insert(argument_texts.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment_texts;
  for (const auto& entry : command.environment) environment_texts.push_back(entry.first + "=" + entry.second);
  environment_texts.push_back(fmt::format("CONVOY_EVENTS_FD={}", kEventsFd));
  // Of a launcher further up nothing is passed on.
  std::erase_if(environment_texts, [](const std::string& text) { return text.starts_with(kStateVariable); });
  if (command.state_file >= 0) environment_texts.push_back(fmt::format("{}{}", kStateVariable, kStateFd));
  std::vector<char*> arguments = pointers(argument_texts);
  std::vector<char*> environment = pointers(environment_texts);

  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  Pipe events = make_pipe();
  Pipe failure = make_pipe();
  const OwnedFd input = lift(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const ChildSetup setup = {
      command.program.c_str(), arguments.data(),   environment.data(), ::getpid(),         input.get(),
      output.write.get(),      errors.write.get(), events.write.get(), command.state_file, failure.write.get()};
  RankProcess process;
  process.pid = ::fork();
  if (process.pid < 0) fail_io("no process");
  if (process.pid == 0) become_rank(setup);
  failure.write.reset();
  if (const int reason = wait_for_start(failure.read); reason != 0) {
    while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw Error(ErrorCode::kInvalidArgument, fmt::format("cannot run {}: {}", command.program, std::strerror(reason)));
  }
  process.pidfd = OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  process.output = std::move(output.read);
  process.errors = std::move(errors.read);
  process.events = std::move(events.read);
  for (const OwnedFd* fd : {&process.output, &process.errors, &process.events}) set_nonblocking(*fd);
  return process;
}

}  // namespace convoy::elastic

// The `convoy` command: everything that needs no libtorch, so that it starts in milliseconds.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "apps/cli/command_line.h"
#include "apps/cli/interrupted.h"
#include "convoy/base/error.h"

namespace {

// A descriptor opened later must never become standard input, output or error of this process.
void fill_standard_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

struct Dispatch {
  int operator()(const convoy::cli::RunRequest& request) const { return convoy::cli::run_command(request); }
  int operator()(const convoy::cli::VerifyRequest& request) const { return convoy::cli::verify_command(request); }
  int operator()(const convoy::cli::LaunchRequest& request) const { return convoy::cli::launch_command(request); }
  int operator()(const convoy::cli::ExplainRequest& request) const { return convoy::cli::explain_command(request); }
  int operator()(const convoy::cli::DataRequest& request) const { return convoy::cli::data_command(request); }
  int operator()(const convoy::cli::ProfileRequest& request) const { return convoy::cli::profile_command(request); }
  int operator()(const convoy::cli::BenchRequest& request) const { return convoy::cli::bench_command(request); }
  int operator()(const convoy::cli::LedgerRequest& request) const { return convoy::cli::ledger_command(request); }
  int operator()(const convoy::cli::TraceRequest& request) const { return convoy::cli::trace_command(request); }
};

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  try {
    const auto parsed = convoy::cli::parse_command_line(std::vector<std::string>(argv + 1, argv + argc));
    if (const auto* answered = std::get_if<convoy::cli::Answered>(&parsed)) return answered->status;
    const int status = std::visit(Dispatch{}, std::get<convoy::cli::Request>(parsed));
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    throw convoy::Error(convoy::ErrorCode::kIo, "the result could not be written to standard output");
  } catch (const convoy::cli::Interrupted& interrupted) {
    fmt::print(stderr, "convoy: {}\n", interrupted.what());
    return interrupted.status();
  } catch (const convoy::Error& error) {
    fmt::print(stderr, "convoy: {}\n", error.what());
    return convoy::exit_status(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "convoy: unexpected: {}\n", error.what());
    return 1;
  }
}

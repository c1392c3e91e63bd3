// convoy-bench: the worker that `convoy bench` starts once for each rank.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/bench/collective/collective_bench.h"
#include "apps/bench/p2p/p2p_bench.h"
#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/comm/in_process_transport.h"
#include "convoy/comm/rendezvous/job.h"

namespace convoy::bench {
namespace {

using Json = nlohmann::ordered_json;
using Peers = std::vector<std::unique_ptr<PeerLibrary>>;

// Where results go: a file, and files beside it for errors.
struct Arguments {
  std::string request;
  std::string result;
  bool list_peers = false;
};

Arguments read_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--request" && i + 1 < words.size()) {
      arguments.request = words[++i];
    } else if (words[i] == "--result" && i + 1 < words.size()) {
      arguments.result = words[++i];
    } else if (words[i] == "--list-peers") {
      arguments.list_peers = true;
    } else {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown argument '{}'", words[i]));
    }
  }
  if (arguments.result.empty() || (arguments.request.empty() && !arguments.list_peers)) {
    throw Error(ErrorCode::kInvalidArgument, "usage: convoy-bench --result FILE (--request JSON | --list-peers)");
  }
  return arguments;
}

// Waits in other libraries have no limit, so the process has one.
void end_after(Duration limit) {
  std::signal(SIGALRM, [](int) {
    constexpr const char* kText = "convoy-bench: the benchmark was not done within its limit (--limit)\n";
    [[maybe_unused]] const auto wrote = ::write(STDERR_FILENO, kText, std::strlen(kText));
    ::_exit(3);
  });
  ::alarm(static_cast<unsigned>(std::max<std::int64_t>(1, static_cast<std::int64_t>(to_seconds(limit)))));
}

comm::GroupOptions group_options(const Request& request) {
  comm::GroupOptions options;
  options.name = "bench";
  options.timeout = request.timeout;
  options.selection.hosts = request.hosts;
  options.selection.machine = request.machine;
  return options;
}

Json measure(Team& team, const Request& request, const Peers& peers) {
  Json result;
  if (request.kind == "p2p") {
    result["rows"] = measure_pairs(team, request);
    result["arithmetic"] = measure_arithmetic(team);
  } else {
    result["rows"] = measure_collectives(team, request, peers);
  }
  return result;
}

void write_result(const Arguments& arguments, const Json& result) {
  write_atomic(local_files(), arguments.result, result.dump() + "\n");
}

// Leaves what this rank failed with; the command chooses the one that is not the echo of another rank's.
void write_error(const Arguments& arguments, ErrorCode code, const std::string& message) {
  const Json json = {{"code", std::string(to_string(code))}, {"message", message}, {"status", exit_status(code)}};
  write_atomic(local_files(), fmt::format("{}.error.{}", arguments.result, ::getpid()),
               json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int fail(const Arguments& arguments, const Error& error) {
  write_error(arguments, error.code(), error.what());
  fmt::print(stderr, "convoy-bench: {}\n", error.what());
  return exit_status(error.code());
}

// Ranks as processes: this one is one of them.
void run_process(const Request& request, const Arguments& arguments) {
  const comm::JobEnvironment job = comm::read_job_environment();
  // Before there are other threads.
  Peers peers;
  const bool under_mpi = request.transport == "openmpi";
  if (request.wants("openmpi")) peers.push_back(make_openmpi(job.rank, job.world_size));
  const auto store = comm::connect_store(job, request.timeout);
  comm::TransportChoice transport;
  transport.name = request.transport;
  const auto group = comm::join_group(job, *store, group_options(request), transport);
  try {
    if (request.wants("gloo")) {
      peers.push_back(make_gloo_library(*store, job.rank, job.world_size, request.timeout));
    }
    Team team(*group, *store, request.timeout);
    const Json result = measure(team, request, peers);
    if (job.rank == 0) write_result(arguments, result);
    comm::barrier(*group);
  } catch (const Error& error) {
    // First, so that no echo is faster.
    write_error(arguments, error.code(), error.what());
    group->abort(error);
    // Open MPI's own end would wait for ranks that wait inside one of its collectives.
    if (under_mpi || request.wants("openmpi")) ::_exit(fail(arguments, error));
    throw;
  }
}

// Ranks as threads of this process.
void run_threads(const Request& request, const Arguments& arguments) {
  auto transports = comm::make_in_process_transports(request.ranks);
  comm::MemoryStore store;
  MeetingPoint meeting;
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < request.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group =
          comm::make_group(std::move(transports[static_cast<std::size_t>(rank)]), group_options(request));
      try {
        Team team(*group, store, request.timeout, &meeting);
        const Json result = measure(team, request, {});
        if (rank == 0) write_result(arguments, result);
        comm::barrier(*group);
      } catch (const Error& error) {
        group->abort(error);
        const std::scoped_lock lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
      }
    });
  }
  threads.clear();
  if (failure != nullptr) std::rethrow_exception(failure);
}

int run(const Arguments& arguments) {
  try {
    if (arguments.list_peers) {
      Json peers = Json::array();
      if (has_openmpi()) peers.push_back("openmpi");
      if (has_gloo_library()) peers.push_back("gloo");
      write_result(arguments, {{"peers", peers}});
      return 0;
    }
    const Request request = read_request(arguments.request);
    end_after(request.limit);
    request.transport == "in_process" ? run_threads(request, arguments) : run_process(request, arguments);
    return 0;
  } catch (const Error& error) {
    return fail(arguments, error);
  }
}

}  // namespace
}  // namespace convoy::bench

int main(int argc, char** argv) {
  try {
    return convoy::bench::run(convoy::bench::read_arguments({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "convoy-bench: {}\n", error.what());
    return 2;
  }
}

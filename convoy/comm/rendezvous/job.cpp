// Reads what the launcher says, and turns started ranks into a group.
#include "convoy/comm/rendezvous/job.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "convoy/comm/in_process_transport.h"
#include "convoy/comm/rendezvous/store_client.h"
#include "convoy/comm/shared_memory_transport.h"

namespace convoy::comm {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

int number_of(const char* name, const std::string& text, int least) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < least) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the environment variable {} is '{}': it must be a number from {} on", name, text, least));
  }
  return number;
}

}  // namespace

JobEnvironment read_job_environment() {
  JobEnvironment job;
  const auto rank = variable("RANK");
  const auto world_size = variable("WORLD_SIZE");
  if (rank.has_value() != world_size.has_value()) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the environment variable {} is set and {} is not",
                                                         rank ? "RANK" : "WORLD_SIZE", rank ? "WORLD_SIZE" : "RANK"));
  }
  if (rank) {
    job.rank = number_of("RANK", *rank, 0);
    job.world_size = number_of("WORLD_SIZE", *world_size, 1);
    if (job.rank >= job.world_size) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the environment variable RANK is {}, WORLD_SIZE only {}", job.rank, job.world_size));
    }
  }
  const auto local_rank = variable("LOCAL_RANK");
  job.local_rank = local_rank ? number_of("LOCAL_RANK", *local_rank, 0) : job.rank;
  job.store_address = variable("CONVOY_STORE").value_or("");
  job.token = variable("CONVOY_JOB_TOKEN").value_or("");
  if (job.world_size > 1 && job.store_address.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the environment variable CONVOY_STORE is not set in a job of {} ranks", job.world_size));
  }
  return job;
}

std::unique_ptr<Store> connect_store(const JobEnvironment& job, Duration limit) {
  if (job.store_address.empty() && job.world_size == 1) return std::make_unique<MemoryStore>();
  return std::make_unique<StoreClient>(job.store_address, job.token, limit);
}

std::unique_ptr<Group> join_group(const JobEnvironment& job, Store& store, const GroupOptions& options) {
  if (job.world_size == 1) return make_group(std::move(make_in_process_transports(1).front()), options);
  SharedMemoryOptions shared;
  shared.group = options.name;
  shared.generation = options.generation;
  shared.limit = options.timeout;
  return make_group(make_shared_memory_transport(store, job.rank, job.world_size, shared), options);
}

}  // namespace convoy::comm

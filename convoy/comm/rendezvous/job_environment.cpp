// Reads what launchers say: Convoy's own, torchrun's words, Open MPI's and Slurm's.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/comm/rendezvous/host_port.h"
#include "convoy/comm/rendezvous/job.h"

namespace convoy::comm {
namespace {

// How a launcher names a rank, the number of ranks and the rank within its host.
struct Words {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

// The first launcher whose variables are set counts: those inside of another come first. Slurm's are those of srun:
// SLURM_NTASKS is also set for a batch script, which is no rank.
constexpr std::array<Words, 3> kLaunchers{{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
}};

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

// Returns whether this launcher has started the process.
bool read_ranks(const Words& words, JobEnvironment& job) {
  const auto rank = variable(words.rank);
  const auto world_size = variable(words.world_size);
  if (!rank && !world_size) return false;
  if (!rank || !world_size) {
    // Half of Slurm's is what a batch script finds.
    if (std::string_view(words.rank) != "RANK") return false;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the environment variable {} is set and {} is not", rank ? words.rank : words.world_size,
                            rank ? words.world_size : words.rank));
  }
  job.rank = number_of(words.rank, *rank, 0);
  job.world_size = number_of(words.world_size, *world_size, 1);
  if (job.rank >= job.world_size) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("the environment variable {} is {}, {} only {}", words.rank,
                                                         job.rank, words.world_size, job.world_size));
  }
  const auto local_rank = variable(words.local_rank);
  job.local_rank = local_rank ? number_of(words.local_rank, *local_rank, 0) : job.rank;
  return true;
}

// A job whose launcher named only a place: rank 0 serves the store there.
void read_master(JobEnvironment& job) {
  const auto address = variable("MASTER_ADDR");
  const auto port = variable("MASTER_PORT");
  if (!address || !port) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("neither the environment variable CONVOY_STORE is set nor both of MASTER_ADDR and "
                            "MASTER_PORT, in a job of {} ranks",
                            job.world_size));
  }
  const HostPort place = HostPort::parse(*address, *port);
  if (place.port == 0) {
    throw Error(ErrorCode::kInvalidArgument, "the environment variable MASTER_PORT is 0: ranks must know the port");
  }
  job.store_address = fmt::format("{}{}", kTcpPrefix, place.str());
  job.serves_store = job.rank == 0;
  if (!job.token.empty()) return;
  if (!place.is_loopback()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the environment variable CONVOY_JOB_TOKEN is not set: a store at {} can be reached from "
                            "other hosts, so all ranks need the same secret there",
                            place.str()));
  }
  job.token = fmt::format("loopback {} {}", ::geteuid(), place.port);
}

}  // namespace

JobEnvironment read_job_environment() {
  JobEnvironment job;
  for (const Words& words : kLaunchers) {
    if (read_ranks(words, job)) break;
  }
  job.store_address = variable("CONVOY_STORE").value_or("");
  job.token = variable("CONVOY_JOB_TOKEN").value_or("");
  if (job.world_size > 1 && job.store_address.empty()) read_master(job);
  return job;
}

}  // namespace convoy::comm

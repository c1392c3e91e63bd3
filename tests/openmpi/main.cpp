// A rank of an mpirun job: plays the scene that its argument names.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/openmpi/scenes.h"

namespace convoy::comm {
namespace {

int number(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Ranks of one job meet at a socket that is named after mpirun's job.
JobEnvironment environment() {
  JobEnvironment job;
  job.rank = job.local_rank = number("OMPI_COMM_WORLD_RANK", 0);
  // A process that nobody started believes to be one of two.
  job.world_size = number("OMPI_COMM_WORLD_SIZE", 2);
  const char* const name = std::getenv("PMIX_NAMESPACE");
  job.store_address = fmt::format("unix:@convoy-openmpi-{}-{}", name == nullptr ? "alone" : name, ::getppid());
  job.token = "one host's ranks of one mpirun";
  job.serves_store = job.rank == 0;
  return job;
}

int play(const std::string& name) {
  const std::map<std::string, std::function<void(const Scene&)>> scenes{
      {"collectives", play_collectives},
      {"details", play_details},
      {"groups", play_groups},
      {"kill", [](const Scene& scene) { play_kill(scene, false); }},
      {"kill_native", [](const Scene& scene) { play_kill(scene, true); }},
      {"silence", play_silence},
  };
  const JobEnvironment job = environment();
  try {
    const auto store = connect_store(job, std::chrono::seconds(20));
    scenes.at(name)(Scene{job, *store});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", job.rank, error.what());
    return 1;
  }
}

}  // namespace
}  // namespace convoy::comm

int main(int argc, char** argv) { return argc == 2 ? convoy::comm::play(argv[1]) : 2; }

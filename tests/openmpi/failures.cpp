// What survivors report over Open MPI, and groups one after the other.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "convoy/comm/native_schedule.h"
#include "tests/openmpi/scenes.h"

namespace convoy::comm {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(3);

Work start_native(Group& group, std::vector<float>& data) {
  spec::CollectiveShape shape;
  shape.ranks = group.size();
  shape.elements = static_cast<std::int64_t>(data.size());
  Collective collective;
  collective.schedule = std::make_shared<const spec::Schedule>(native_schedule("all_reduce", shape));
  collective.inputs = {Buffer(std::span<float>(data))};
  collective.output = collective.inputs.front();
  return group.submit(std::move(collective));
}

// Prints what a survivor reports, for the test that started the job.
void report(const Group& group, const Error& error, TimePoint begin) {
  fmt::print("rank {} of {} reports {} after {:.3f} s: {}\n", group.rank(), group.size(), to_string(error.code()),
             to_seconds(system_clock().now() - begin), error.message());
  std::fflush(stdout);
}

void wait_and_report(Group& group, Work work, TimePoint begin) {
  try {
    work.wait();
  } catch (const Error& error) {
    return report(group, error, begin);
  }
  throw Error(ErrorCode::kFailed, "the operation succeeded without rank 1");
}

}  // namespace

void play_groups(const Scene& scene) {
  for (std::uint64_t generation = 1; generation <= 20; ++generation) {
    const auto group = scene.join(generation, std::chrono::seconds(20));
    double sum = 0;
    for (int rank = 0; rank < group->size(); ++rank) sum += rank;
    expect(all_reduce_number(*group, group->rank(), ReduceOp::kSum) == sum, "a new group adds up");
    if (generation % 4 != 0) continue;
    // Given up in the middle of an operation that rank 0 never joins.
    if (group->rank() == 0) {
      // The others are out of the sum by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group->abort(Error(ErrorCode::kAborted, "the scene wants it"));
      continue;
    }
    try {
      barrier(*group);
    } catch (const Error& error) {
      expect(error.code() == ErrorCode::kAborted && error.message().find("the scene wants it") != std::string::npos,
             error.what());
      continue;
    }
    throw Error(ErrorCode::kFailed, "a barrier without rank 0 succeeded");
  }
}

void play_kill(const Scene& scene, bool in_native) {
  const auto group = scene.join(1, kDeadline);
  std::vector<float> data(std::size_t{1} << (in_native ? 24 : 10), 1.0F);
  barrier(*group);
  const TimePoint begin = system_clock().now();
  if (group->rank() != 1) return wait_and_report(*group, start_native(*group, data), begin);
  if (in_native) {
    const Work work = start_native(*group, data);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(::getpid(), SIGKILL);
  }
  ::kill(::getpid(), SIGKILL);
}

void play_silence(const Scene& scene) {
  const auto group = scene.join(1, kDeadline);
  std::vector<float> data(std::size_t{1} << 10, 1.0F);
  barrier(*group);
  const TimePoint begin = system_clock().now();
  if (group->rank() == 1) {
    scene.store.set("stopped", fmt::format("{}", ::getpid()));
    ::kill(::getpid(), SIGSTOP);
  }
  wait_and_report(*group, start_native(*group, data), begin);
  if (group->rank() != 0) return;
  // Once all have reported; a rank that stops does not end its job.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(std::stoi(scene.store.get("stopped", kDeadline)), SIGKILL);
}

}  // namespace convoy::comm

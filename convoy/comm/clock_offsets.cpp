#include "convoy/comm/clock_offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/builder.h"

namespace convoy::comm {
namespace {

// One number from one rank to another; the others have nothing to do.
spec::Schedule message_schedule(int ranks, int from, int to) {
  spec::ScheduleBuilder builder("message", "direct", ranks, 1);
  spec::Schedule& sizes = builder.sizes();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    sizes.inputs[index] = rank == from ? 1 : 0;
    sizes.input_elements[index] = rank == from ? 1 : 0;
    sizes.output_elements[index] = rank == to ? 1 : 0;
  }
  builder.transfer(0, from, {spec::BufferKind::kInput, 0, 0, 1}, to, {spec::BufferKind::kOutput, 0, 0, 1});
  return builder.finish();
}

void send(Group& group, int from, int to, std::int64_t& number) {
  Collective message;
  message.schedule =
      group.schedule(fmt::format("message {} {}", from, to), [&] { return message_schedule(group.size(), from, to); });
  if (group.rank() == from) message.inputs.emplace_back(std::span<std::int64_t>(&number, 1));
  if (group.rank() == to) message.output = Buffer(std::span<std::int64_t>(&number, 1));
  message.dtype = DType::kInt64;
  group.run(std::move(message));
}

// Asks one rank; only rank 0 learns something.
ClockOffset ask(Group& group, int rank, const Clock& clock, int rounds) {
  ClockOffset best;
  Duration shortest = Duration::max();
  for (int round = 0; round < rounds; ++round) {
    std::int64_t answer = 0;
    const TimePoint begin = clock.now();
    send(group, 0, rank, answer);
    if (group.rank() == rank) answer = clock.now().time_since_epoch().count();
    send(group, rank, 0, answer);
    const Duration taken = clock.now() - begin;
    if (group.rank() != 0 || taken >= shortest) continue;
    shortest = taken;
    best.offset = (begin + taken / 2).time_since_epoch() - Duration(answer);
    best.uncertainty = (taken + Duration(1)) / 2;
  }
  return best;
}

}  // namespace

std::vector<ClockOffset> measure_clock_offsets(Group& group, const Clock& clock, const ClockOffsetOptions& options) {
  if (options.rounds < 1) throw Error(ErrorCode::kInvalidArgument, "clocks are compared in at least one round");
  const auto ranks = static_cast<std::size_t>(group.size());
  spec::HostOfRank hosts = group.hosts();
  hosts.resize(ranks, 0);
  std::vector<ClockOffset> offsets(ranks);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    const auto same = std::find(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(rank), hosts[rank]);
    const auto mate = static_cast<std::size_t>(same - hosts.begin());
    offsets[rank] =
        options.every_rank || mate == rank ? ask(group, static_cast<int>(rank), clock, options.rounds) : offsets[mate];
  }
  std::vector<std::int64_t> numbers;
  for (const ClockOffset& one : offsets) numbers.insert(numbers.end(), {one.offset.count(), one.uncertainty.count()});
  broadcast_async(group, Buffer(std::span<std::int64_t>(numbers)), 0, DType::kInt64).wait();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    offsets[rank] = {Duration(numbers[2 * rank]), Duration(numbers[2 * rank + 1])};
  }
  return offsets;
}

ClockOffset own_clock_offset(Group& group) {
  return measure_clock_offsets(group)[static_cast<std::size_t>(group.rank())];
}

}  // namespace convoy::comm

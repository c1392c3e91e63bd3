// Writes schedules for people.
#include "convoy/spec/schedule/describe.h"

#include <fmt/format.h>

namespace convoy::spec {
namespace {

// The sum as a formula; a program that is no proper postfix is written as it stands.
std::string formula(const Operation& operation) {
  std::vector<std::string> stack;
  const std::string raw = fmt::format("program [{}]", fmt::join(operation.program, " "));
  for (const int step : operation.program) {
    if (step >= 0 && static_cast<std::size_t>(step) < operation.sources.size()) {
      stack.push_back(to_string(operation.sources[static_cast<std::size_t>(step)]));
    } else if (step == kAdd && stack.size() >= 2) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = fmt::format("({} + {})", stack.back(), right);
    } else {
      return raw;
    }
  }
  return stack.size() == 1 ? stack.front() : raw;
}

}  // namespace

std::string_view to_string(OpKind kind) {
  switch (kind) {
    case OpKind::kSend: return "send";
    case OpKind::kReceive: return "receive";
    case OpKind::kReduce: return "reduce";
    case OpKind::kCopy: return "copy";
    case OpKind::kForward: return "F";
    case OpKind::kBackwardInput: return "B";
    case OpKind::kBackwardWeight: return "W";
    case OpKind::kRecompute: return "R";
  }
  return "unknown";
}

std::string to_string(const Chunk& chunk) {
  const std::string range = fmt::format("[{}, {})", chunk.offset, chunk.offset + chunk.count);
  switch (chunk.kind) {
    case BufferKind::kInput: return fmt::format("input {} {}", chunk.index, range);
    case BufferKind::kOutput: return fmt::format("output {}", range);
    case BufferKind::kScratch: return fmt::format("scratch {}", chunk.index);
    case BufferKind::kWork: return fmt::format("work {}", range);
  }
  return "unknown";
}

std::string to_string(const Operation& operation) {
  const std::string target = to_string(operation.target);
  const std::string_view final = operation.final ? ", final" : "";
  switch (operation.kind) {
    case OpKind::kSend: return fmt::format("send {} to rank {}", target, operation.peer);
    case OpKind::kReceive: return fmt::format("receive {} from rank {}", target, operation.peer);
    case OpKind::kReduce: return fmt::format("reduce {} = {}{}", target, formula(operation), final);
    case OpKind::kCopy:
      return fmt::format("copy {} = {}{}", target,
                         operation.sources.empty() ? "nothing" : to_string(operation.sources.front()), final);
    default:
      return fmt::format("{} of micro-batch {}, model chunk {}", to_string(operation.kind), operation.micro_batch,
                         operation.model_chunk);
  }
}

std::string describe(const Schedule& schedule) {
  std::string text = fmt::format("{} {} of {} elements on {} ranks, {} contributions\n", schedule.algorithm,
                                 schedule.collective, schedule.elements, schedule.ranks.size(), schedule.contributions);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t round = 0; round < schedule.ranks[rank].size(); ++round) {
      text += fmt::format("rank {}, round {}\n", rank, round);
      for (const Operation& operation : schedule.ranks[rank][round])
        text += fmt::format("  {}\n", to_string(operation));
    }
  }
  return text;
}

}  // namespace convoy::spec

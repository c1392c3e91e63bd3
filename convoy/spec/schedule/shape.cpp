// Checks each operation of a schedule by itself.
#include "convoy/spec/schedule/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/describe.h"

namespace convoy::spec {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

class Checker {
 public:
  explicit Checker(const Schedule& schedule) : schedule_(schedule) {}
  void check_shape() const;

 private:
  void check_operation(int rank, std::size_t round, const Operation& operation) const;
  void check_chunk(int rank, std::size_t round, const Operation& operation, const Chunk& chunk) const;
  void check_program(int rank, std::size_t round, const Operation& operation) const;

  const Schedule& schedule_;
};

void Checker::check_shape() const {
  const std::size_t ranks = schedule_.ranks.size();
  if (ranks == 0) refuse("a schedule needs at least one rank");
  for (const std::size_t size : {schedule_.input_elements.size(), schedule_.output_elements.size(),
                                 schedule_.inputs.size(), schedule_.scratches.size()}) {
    if (size != ranks) refuse(fmt::format("{}: {} ranks, but sizes for {}", schedule_.algorithm, ranks, size));
  }
  const std::size_t works = schedule_.work_elements.size();
  if (works != 0 && works != ranks) {
    refuse(fmt::format("{}: {} ranks, but work memory for {}", schedule_.algorithm, ranks, works));
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t round = 0; round < schedule_.ranks[rank].size(); ++round) {
      for (const Operation& operation : schedule_.ranks[rank][round]) {
        check_operation(static_cast<int>(rank), round, operation);
      }
    }
  }
}

void Checker::check_operation(int rank, std::size_t round, const Operation& operation) const {
  const OpKind kind = operation.kind;
  check_chunk(rank, round, operation, operation.target);
  for (const Chunk& source : operation.sources) {
    check_chunk(rank, round, operation, source);
    if (source.count != operation.target.count) {
      refuse_operation(schedule_, rank, round, operation,
                       fmt::format("{} is not as long as the target", to_string(source)));
    }
  }
  if (kind == OpKind::kSend || kind == OpKind::kReceive) {
    if (operation.peer < 0 || operation.peer >= static_cast<int>(schedule_.ranks.size()) || operation.peer == rank) {
      refuse_operation(schedule_, rank, round, operation, "there is no such peer");
    }
  }
  if (kind == OpKind::kSend) {
    if (operation.target.kind == BufferKind::kScratch)
      refuse_operation(schedule_, rank, round, operation, "a scratch cannot be sent");
  } else if (operation.target.kind == BufferKind::kInput) {
    refuse_operation(schedule_, rank, round, operation, "an input is read only");
  } else if (kind == OpKind::kReduce) {
    check_program(rank, round, operation);
  } else if (kind == OpKind::kCopy) {
    if (operation.sources.size() != 1) refuse_operation(schedule_, rank, round, operation, "a copy has one source");
  } else if (kind != OpKind::kReceive) {
    refuse_operation(schedule_, rank, round, operation, "only communication can be played");
  }
  const bool computes = kind == OpKind::kReduce || kind == OpKind::kCopy;
  if (computes && operation.target.kind == BufferKind::kScratch) {
    refuse_operation(schedule_, rank, round, operation, "a scratch is only received into");
  }
}

void Checker::check_chunk(int rank, std::size_t round, const Operation& operation, const Chunk& chunk) const {
  const auto r = static_cast<std::size_t>(rank);
  int buffers = 1;
  std::int64_t elements = chunk.count;  // a scratch is as long as what it takes
  if (chunk.kind == BufferKind::kInput) {
    buffers = schedule_.inputs[r];
    elements = schedule_.input_elements[r];
  } else if (chunk.kind == BufferKind::kOutput) {
    elements = schedule_.output_elements[r];
  } else if (chunk.kind == BufferKind::kWork) {
    elements = schedule_.work_elements.empty() ? 0 : schedule_.work_elements[r];
  } else {
    buffers = schedule_.scratches[r];
  }
  if (chunk.index < 0 || chunk.index >= buffers || chunk.offset < 0 || chunk.count < 0 ||
      chunk.offset + chunk.count > elements) {
    refuse_operation(schedule_, rank, round, operation,
                     fmt::format("{} does not lie in {} buffers of {} elements", to_string(chunk), buffers, elements));
  }
}

void Checker::check_program(int rank, std::size_t round, const Operation& operation) const {
  std::vector<int> pushed(operation.sources.size(), 0);
  int depth = 0;
  for (const int step : operation.program) {
    if (step == kAdd) {
      if (depth < 2) refuse_operation(schedule_, rank, round, operation, "the program adds what it has not");
      --depth;
      continue;
    }
    if (step < 0 || static_cast<std::size_t>(step) >= pushed.size()) {
      refuse_operation(schedule_, rank, round, operation,
                       fmt::format("the program names source {}, which is not there", step));
    }
    ++pushed[static_cast<std::size_t>(step)];
    ++depth;
  }
  if (depth != 1) refuse_operation(schedule_, rank, round, operation, "the program does not end with one value");
  if (std::any_of(pushed.begin(), pushed.end(), [](int times) { return times != 1; })) {
    refuse_operation(schedule_, rank, round, operation, "the program does not use each source once");
  }
}

}  // namespace

void check_shape(const Schedule& schedule) { Checker(schedule).check_shape(); }

void refuse_operation(const Schedule& schedule, int rank, std::size_t round, const Operation& operation,
                      const std::string& why) {
  const Round& list = schedule.ranks[static_cast<std::size_t>(rank)][round];
  refuse(fmt::format("{}: rank {}, round {}, operation {} ({}): {}", schedule.algorithm, rank, round,
                     &operation - list.data(), to_string(operation), why));
}

}  // namespace convoy::spec

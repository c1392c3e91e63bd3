// Appends operations to schedules.
#include "convoy/spec/schedule/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"

namespace convoy::spec {
namespace {

Operation message(OpKind kind, int peer, const Chunk& chunk) {
  Operation operation;
  operation.kind = kind;
  operation.peer = peer;
  operation.target = chunk;
  return operation;
}

}  // namespace

View buffer_view(BufferKind kind) {
  return [kind](int, ElementRange range) { return Chunk{kind, 0, range.begin, range.size()}; };
}

View buffer_view(BufferKind kind, std::vector<std::int64_t> begins) {
  return [kind, begins = std::move(begins)](int rank, ElementRange range) {
    return Chunk{kind, 0, range.begin - begins[static_cast<std::size_t>(rank)], range.size()};
  };
}

int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

ScheduleBuilder::ScheduleBuilder(std::string collective, std::string algorithm, int ranks, std::int64_t elements) {
  if (ranks < 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} ranks", ranks));
  if (elements < 0) throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} elements", elements));
  const auto count = static_cast<std::size_t>(ranks);
  schedule_.algorithm = std::move(algorithm);
  schedule_.collective = std::move(collective);
  schedule_.elements = elements;
  schedule_.input_elements.assign(count, elements);
  schedule_.output_elements.assign(count, elements);
  schedule_.inputs.assign(count, 1);
  schedule_.scratches.assign(count, 0);
  schedule_.ranks.resize(count);
}

Round& ScheduleBuilder::at(int round, int rank) {
  RankRounds& rounds = schedule_.ranks[static_cast<std::size_t>(rank)];
  if (rounds.size() <= static_cast<std::size_t>(round)) rounds.resize(static_cast<std::size_t>(round) + 1);
  return rounds[static_cast<std::size_t>(round)];
}

void ScheduleBuilder::transfer(int round, int from, const Chunk& source, int to, const Chunk& target) {
  if (source.count == 0) return;
  at(round, from).push_back(message(OpKind::kSend, to, source));
  at(round, to).push_back(message(OpKind::kReceive, from, target));
}

Chunk ScheduleBuilder::take(int round, int from, const Chunk& source, int to) {
  Chunk scratch{BufferKind::kScratch, 0, 0, source.count};
  if (source.count == 0) return scratch;
  scratch.index = schedule_.scratches[static_cast<std::size_t>(to)]++;
  transfer(round, from, source, to, scratch);
  return scratch;
}

void ScheduleBuilder::signal(int round, int from, int to) {
  const Chunk nothing{BufferKind::kOutput, 0, 0, 0};
  at(round, from).push_back(message(OpKind::kSend, to, nothing));
  at(round, to).push_back(message(OpKind::kReceive, from, nothing));
}

void ScheduleBuilder::reduce(int round, int rank, const Chunk& target, std::vector<Chunk> sources,
                             std::vector<int> program, bool final) {
  if (target.count == 0 || (!final && sources.size() == 1 && sources.front() == target)) return;
  Operation operation;
  operation.kind = OpKind::kReduce;
  operation.target = target;
  operation.sources = std::move(sources);
  operation.program = std::move(program);
  operation.final = final;
  at(round, rank).push_back(std::move(operation));
}

void ScheduleBuilder::add(int round, int rank, const Chunk& target, const Chunk& left, const Chunk& right, bool final) {
  reduce(round, rank, target, {left, right}, {0, 1, kAdd}, final);
}

void ScheduleBuilder::copy(int round, int rank, const Chunk& target, const Chunk& source) {
  if (target.count == 0 || target == source) return;
  Operation operation;
  operation.kind = OpKind::kCopy;
  operation.target = target;
  operation.sources = {source};
  operation.final = true;
  at(round, rank).push_back(std::move(operation));
}

void ScheduleBuilder::need_work(int rank, std::int64_t elements) {
  schedule_.work_elements.resize(schedule_.ranks.size(), 0);
  std::int64_t& work = schedule_.work_elements[static_cast<std::size_t>(rank)];
  work = std::max(work, elements);
}

Schedule ScheduleBuilder::finish() {
  std::size_t rounds = 0;
  for (const RankRounds& rank : schedule_.ranks) rounds = std::max(rounds, rank.size());
  const auto step = [](const Operation& operation) {
    return operation.kind == OpKind::kSend ? 0 : operation.kind == OpKind::kReceive ? 1 : 2;
  };
  for (RankRounds& rank : schedule_.ranks) {
    rank.resize(rounds);
    for (Round& round : rank) {
      std::stable_sort(round.begin(), round.end(),
                       [&](const Operation& a, const Operation& b) { return step(a) < step(b); });
    }
  }
  return std::move(schedule_);
}

}  // namespace convoy::spec

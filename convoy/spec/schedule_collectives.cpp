// Builds the schedules of collective operations: pure functions from sizes to lists.
//
// Words: W is the number of ranks, *right* of rank r is r + 1 and *left* r - 1, both modulo W. A rank visits its peers
// from its right onwards and takes from its left onwards, so that no rank is everybody's first.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/blocks.h"
#include "convoy/spec/schedule.h"

namespace convoy::spec {
namespace {

Chunk input(int index, ElementRange range) { return {BufferKind::kInput, index, range.begin, range.size()}; }
Chunk output(ElementRange range) { return {BufferKind::kOutput, 0, range.begin, range.size()}; }
Chunk scratch(int index, std::int64_t count) { return {BufferKind::kScratch, index, 0, count}; }

int wrap(int rank, int ranks) { return ((rank % ranks) + ranks) % ranks; }

Operation message(OpKind kind, int peer, const Chunk& chunk) {
  Operation operation;
  operation.kind = kind;
  operation.peer = peer;
  operation.target = chunk;
  return operation;
}

// Adds a send or receive; an empty one is nothing to either side.
void add_message(Round& round, OpKind kind, int peer, const Chunk& chunk) {
  if (chunk.count > 0) round.push_back(message(kind, peer, chunk));
}

void add_reduce(Round& round, const Chunk& target, std::vector<Chunk> sources, std::vector<int> program, bool final) {
  if (target.count == 0) return;
  Operation operation;
  operation.kind = OpKind::kReduce;
  operation.target = target;
  operation.sources = std::move(sources);
  operation.program = std::move(program);
  operation.final = final;
  round.push_back(std::move(operation));
}

void add_copy(Round& round, const Chunk& target, const Chunk& source) {
  if (target.count == 0) return;
  Operation operation;
  operation.kind = OpKind::kCopy;
  operation.target = target;
  operation.sources = {source};
  operation.final = true;
  round.push_back(std::move(operation));
}

void check_size(int ranks, std::int64_t elements) {
  if (ranks < 1) throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} ranks", ranks));
  if (elements < 0) throw Error(ErrorCode::kInvalidArgument, fmt::format("a schedule for {} elements", elements));
}

Schedule make_schedule(std::string algorithm, std::string collective, int ranks, std::int64_t elements) {
  check_size(ranks, elements);
  const auto count = static_cast<std::size_t>(ranks);
  Schedule schedule;
  schedule.algorithm = std::move(algorithm);
  schedule.collective = std::move(collective);
  schedule.elements = elements;
  schedule.input_elements.assign(count, elements);
  schedule.output_elements.assign(count, elements);
  schedule.inputs.assign(count, 1);
  schedule.scratches.assign(count, 0);
  schedule.ranks.resize(count);
  return schedule;
}

// The smallest k with 2^k >= ranks.
int rounds_of_doubling(int ranks) {
  int rounds = 0;
  while ((1 << rounds) < ranks) ++rounds;
  return rounds;
}

// A partial of an ordered exchange: input `index` of `owner`.
struct Partial {
  int owner = 0;
  int index = 0;
};

// The partials of a layout from left to right, and the program that sums them along the canonical tree.
struct OrderedPlan {
  std::vector<Partial> partials;
  std::vector<int> inputs;
  std::vector<int> program;
};

OrderedPlan plan_ordered(const OrderedLayout& layout) {
  OrderedPlan plan;
  std::vector<ReplicaRange> parts;
  for (std::size_t rank = 0; rank < layout.owners.size(); ++rank) {
    const std::vector<ReplicaRange> own = maximal_subtrees(layout.leaves, layout.owners[rank]);
    for (std::size_t k = 0; k < own.size(); ++k) plan.partials.push_back({static_cast<int>(rank), static_cast<int>(k)});
    plan.inputs.push_back(static_cast<int>(own.size()));
    parts.insert(parts.end(), own.begin(), own.end());
  }
  plan.program = tree_program(layout.leaves, parts);
  return plan;
}

// The round in which each rank takes all partials of its shard and sums them into `target`.
Round exchange_round(const OrderedPlan& plan, int rank, int ranks, std::int64_t elements, const Chunk& target,
                     int& scratches) {
  Round round;
  for (int step = 1; step < ranks; ++step) {
    const int peer = wrap(rank + step, ranks);
    for (int k = 0; k < plan.inputs[static_cast<std::size_t>(rank)]; ++k) {
      add_message(round, OpKind::kSend, peer, input(k, shard_range(elements, ranks, peer)));
    }
  }
  const ElementRange own = shard_range(elements, ranks, rank);
  if (own.size() == 0) return round;
  std::vector<Chunk> sources;
  std::vector<std::vector<Chunk>> received(static_cast<std::size_t>(ranks));
  for (const Partial& partial : plan.partials) {
    if (partial.owner == rank) {
      sources.push_back(input(partial.index, own));
    } else {
      sources.push_back(scratch(scratches++, own.size()));
      received[static_cast<std::size_t>(partial.owner)].push_back(sources.back());
    }
  }
  for (int step = 1; step < ranks; ++step) {
    const int peer = wrap(rank - step, ranks);
    for (const Chunk& chunk : received[static_cast<std::size_t>(peer)]) {
      add_message(round, OpKind::kReceive, peer, chunk);
    }
  }
  add_reduce(round, target, std::move(sources), plan.program, true);
  return round;
}

// The round in which each rank gives its finished shard to all others.
Round spread_round(int rank, int ranks, std::int64_t elements) {
  Round round;
  for (int step = 1; step < ranks; ++step) {
    add_message(round, OpKind::kSend, wrap(rank + step, ranks), output(shard_range(elements, ranks, rank)));
  }
  for (int step = 1; step < ranks; ++step) {
    const int peer = wrap(rank - step, ranks);
    add_message(round, OpKind::kReceive, peer, output(shard_range(elements, ranks, peer)));
  }
  return round;
}

Schedule ordered(const OrderedLayout& layout, std::int64_t elements, bool spread) {
  const int ranks = static_cast<int>(layout.owners.size());
  Schedule schedule = make_schedule("ordered_exchange", spread ? "all_reduce" : "reduce_scatter", ranks, elements);
  const OrderedPlan plan = plan_ordered(layout);
  schedule.contributions = layout.leaves;
  schedule.inputs = plan.inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const ElementRange own = shard_range(elements, ranks, rank);
    if (schedule.inputs[r] == 0) schedule.input_elements[r] = 0;
    if (!spread) schedule.output_elements[r] = own.size();
    const Chunk target = spread ? output(own) : output({0, own.size()});
    schedule.ranks[r].push_back(exchange_round(plan, rank, ranks, elements, target, schedule.scratches[r]));
    if (spread && ranks > 1) schedule.ranks[r].push_back(spread_round(rank, ranks, elements));
  }
  return schedule;
}

// The place of each part in the gathered whole.
std::vector<ElementRange> part_ranges(const std::vector<std::int64_t>& parts) {
  std::vector<ElementRange> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t part : parts) {
    check_size(1, part);
    ranges.push_back({begin, begin + part});
    begin += part;
  }
  return ranges;
}

Schedule make_all_gather(std::string algorithm, const std::vector<std::int64_t>& parts,
                         const std::vector<ElementRange>& places) {
  const std::int64_t elements = places.empty() ? 0 : places.back().end;
  Schedule schedule = make_schedule(std::move(algorithm), "all_gather", static_cast<int>(parts.size()), elements);
  schedule.input_elements = parts;
  return schedule;
}

}  // namespace

Schedule ordered_all_reduce(const OrderedLayout& layout, std::int64_t elements) {
  return ordered(layout, elements, true);
}

Schedule ordered_reduce_scatter(const OrderedLayout& layout, std::int64_t elements) {
  return ordered(layout, elements, false);
}

Schedule ring_all_reduce(int ranks, std::int64_t elements) {
  Schedule schedule = make_schedule("ring", "all_reduce", ranks, elements);
  schedule.contributions = ranks;
  schedule.scratches.assign(static_cast<std::size_t>(ranks), ranks - 1);
  // Even parts down to one element: a ring's sums follow no canonical blocks, so nothing asks for their borders.
  const auto part = [&](int index) { return shard_range(elements, ranks, wrap(index, ranks), 1); };
  for (int rank = 0; rank < ranks; ++rank) {
    RankRounds& rounds = schedule.ranks[static_cast<std::size_t>(rank)];
    if (ranks == 1) {
      rounds.emplace_back();
      add_reduce(rounds.back(), output(part(0)), {input(0, part(0))}, {0}, true);
    }
    const int left = wrap(rank - 1, ranks);
    const int right = wrap(rank + 1, ranks);
    // Part p starts at rank p and gathers one summand at each rank, until rank p - 1 has the whole sum of it.
    for (int step = 0; step + 1 < ranks; ++step) {
      Round& round = rounds.emplace_back();
      const ElementRange sent = part(rank - step);
      const ElementRange taken = part(rank - step - 1);
      add_message(round, OpKind::kSend, right, step == 0 ? input(0, sent) : output(sent));
      add_message(round, OpKind::kReceive, left, scratch(step, taken.size()));
      add_reduce(round, output(taken), {scratch(step, taken.size()), input(0, taken)}, {0, 1, kAdd}, step + 2 == ranks);
    }
    // The finished parts go round once more.
    for (int step = 0; step + 1 < ranks; ++step) {
      Round& round = rounds.emplace_back();
      add_message(round, OpKind::kSend, right, output(part(rank + 1 - step)));
      add_message(round, OpKind::kReceive, left, output(part(rank - step)));
    }
  }
  return schedule;
}

Schedule direct_all_gather(const std::vector<std::int64_t>& parts) {
  const std::vector<ElementRange> places = part_ranges(parts);
  Schedule schedule = make_all_gather("direct", parts, places);
  const int ranks = static_cast<int>(parts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const ElementRange own = places[static_cast<std::size_t>(rank)];
    const Chunk mine = input(0, {0, own.size()});
    Round& round = schedule.ranks[static_cast<std::size_t>(rank)].emplace_back();
    for (int step = 1; step < ranks; ++step) add_message(round, OpKind::kSend, wrap(rank + step, ranks), mine);
    for (int step = 1; step < ranks; ++step) {
      const int peer = wrap(rank - step, ranks);
      add_message(round, OpKind::kReceive, peer, output(places[static_cast<std::size_t>(peer)]));
    }
    add_copy(round, output(own), mine);
  }
  return schedule;
}

Schedule ring_all_gather(const std::vector<std::int64_t>& parts) {
  const std::vector<ElementRange> places = part_ranges(parts);
  Schedule schedule = make_all_gather("ring", parts, places);
  const int ranks = static_cast<int>(parts.size());
  const auto place = [&](int index) { return places[static_cast<std::size_t>(wrap(index, ranks))]; };
  for (int rank = 0; rank < ranks; ++rank) {
    RankRounds& rounds = schedule.ranks[static_cast<std::size_t>(rank)];
    const Chunk mine = input(0, {0, place(rank).size()});
    rounds.resize(static_cast<std::size_t>(std::max(1, ranks - 1)));
    for (int step = 0; step + 1 < ranks; ++step) {
      Round& round = rounds[static_cast<std::size_t>(step)];
      add_message(round, OpKind::kSend, wrap(rank + 1, ranks), step == 0 ? mine : output(place(rank - step)));
      add_message(round, OpKind::kReceive, wrap(rank - 1, ranks), output(place(rank - step - 1)));
    }
    add_copy(rounds.front(), output(place(rank)), mine);
  }
  return schedule;
}

Schedule binomial_broadcast(int ranks, int root, std::int64_t elements) {
  Schedule schedule = make_schedule("binomial", "broadcast", ranks, elements);
  if (root < 0 || root >= ranks) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} cannot be the root of {} ranks", root, ranks));
  }
  schedule.root = root;
  const ElementRange whole{0, elements};
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    // Numbered from the root, ranks below 2^k have the value before round k and give it to those below 2^(k+1).
    const int number = wrap(rank - root, ranks);
    RankRounds& rounds = schedule.ranks[r];
    rounds.resize(static_cast<std::size_t>(std::max(1, rounds_of_doubling(ranks))));
    for (int k = 0; k < rounds_of_doubling(ranks); ++k) {
      Round& round = rounds[static_cast<std::size_t>(k)];
      const int distance = 1 << k;
      if (number < distance && number + distance < ranks) {
        add_message(round, OpKind::kSend, wrap(rank + distance, ranks), k == 0 ? input(0, whole) : output(whole));
      } else if (number >= distance && number < 2 * distance) {
        add_message(round, OpKind::kReceive, wrap(rank - distance, ranks), output(whole));
      }
    }
    if (rank == root) {
      add_copy(rounds.front(), output(whole), input(0, whole));
    } else {
      schedule.inputs[r] = 0;
      schedule.input_elements[r] = 0;
    }
  }
  return schedule;
}

Schedule dissemination_barrier(int ranks) {
  Schedule schedule = make_schedule("dissemination", "barrier", ranks, 0);
  schedule.inputs.assign(static_cast<std::size_t>(ranks), 0);
  const Chunk nothing = output({0, 0});
  for (int rank = 0; rank < ranks; ++rank) {
    for (int k = 0; k < rounds_of_doubling(ranks); ++k) {
      Round& round = schedule.ranks[static_cast<std::size_t>(rank)].emplace_back();
      round.push_back(message(OpKind::kSend, wrap(rank + (1 << k), ranks), nothing));
      round.push_back(message(OpKind::kReceive, wrap(rank - (1 << k), ranks), nothing));
    }
  }
  return schedule;
}

}  // namespace convoy::spec

// Builds ordered exchanges. A rank visits its peers from its right onwards and takes from its left onwards, so that no
// rank is everybody's first.
#include "convoy/spec/collectives/ordered.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/spec/schedule/builder.h"

namespace convoy::spec {
namespace {

// A partial: input `index` of `owner`.
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

ScheduleBuilder start(const char* collective, const char* algorithm, const OrderedLayout& layout,
                      const OrderedPlan& plan, std::int64_t elements) {
  const int ranks = static_cast<int>(layout.owners.size());
  ScheduleBuilder builder(collective, algorithm, ranks, elements);
  Schedule& sizes = builder.sizes();
  sizes.contributions = layout.leaves;
  sizes.inputs = plan.inputs;
  for (std::size_t r = 0; r < plan.inputs.size(); ++r) {
    if (plan.inputs[r] == 0) sizes.input_elements[r] = 0;
  }
  return builder;
}

Chunk input(int index, ElementRange range) { return {BufferKind::kInput, index, range.begin, range.size()}; }

// Each rank takes all partials of its part and sums them into `results`.
void exchange(ScheduleBuilder& builder, const OrderedPlan& plan, const std::vector<ElementRange>& parts,
              const View& results, int round = 0) {
  const int ranks = builder.ranks();
  std::vector<std::vector<Chunk>> summands(parts.size(), std::vector<Chunk>(plan.partials.size()));
  for (int step = 0; step < ranks; ++step) {
    for (std::size_t i = 0; i < plan.partials.size(); ++i) {
      const Partial& partial = plan.partials[i];
      const int taker = wrap(partial.owner + step, ranks);
      const Chunk sent = input(partial.index, parts[static_cast<std::size_t>(taker)]);
      summands[static_cast<std::size_t>(taker)][i] = step == 0 ? sent : builder.take(round, partial.owner, sent, taker);
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    builder.reduce(round, rank, results(rank, parts[r]), std::move(summands[r]), plan.program, true);
  }
}

std::vector<ElementRange> shards_of(ElementRange whole, int ranks) {
  std::vector<ElementRange> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    const ElementRange shard = shard_range(whole.size(), ranks, rank);
    shards.push_back({whole.begin + shard.begin, whole.begin + shard.end});
  }
  return shards;
}

std::vector<ElementRange> shards_of(std::int64_t elements, int ranks) { return shards_of({0, elements}, ranks); }

}  // namespace

OrderedLayout one_leaf_each(int ranks) {
  OrderedLayout layout;
  layout.leaves = ranks;
  for (int rank = 0; rank < ranks; ++rank) layout.owners.push_back({rank, rank + 1});
  return layout;
}

std::vector<ElementRange> ordered_segments(std::int64_t elements, int ranks, std::int64_t chunk_elements) {
  if (chunk_elements <= 0) return {{0, elements}};
  const std::int64_t even = ranks * kBlockElements;
  const std::int64_t length = std::max<std::int64_t>(1, chunk_elements / even) * even;
  std::vector<ElementRange> segments;
  for (std::int64_t begin = 0; begin < elements || begin == 0; begin += length) {
    segments.push_back({begin, std::min(elements, begin + length)});
  }
  return segments;
}

Schedule ordered_all_reduce(const OrderedLayout& layout, std::int64_t elements, std::int64_t chunk_elements) {
  const OrderedPlan plan = plan_ordered(layout);
  ScheduleBuilder builder = start("all_reduce", "ordered_exchange", layout, plan, elements);
  const int ranks = builder.ranks();
  const View output = buffer_view(BufferKind::kOutput);
  int round = 0;
  for (const ElementRange& segment : ordered_segments(elements, ranks, chunk_elements)) {
    const std::vector<ElementRange> shards = shards_of(segment, ranks);
    exchange(builder, plan, shards, output, round);
    ++round;
    for (int step = 1; step < ranks; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const ElementRange own = shards[static_cast<std::size_t>(rank)];
        const int to = wrap(rank + step, ranks);
        builder.transfer(round, rank, output(rank, own), to, output(to, own));
      }
    }
  }
  return builder.finish();
}

Schedule ordered_direct_all_reduce(const OrderedLayout& layout, std::int64_t elements) {
  const OrderedPlan plan = plan_ordered(layout);
  ScheduleBuilder builder = start("all_reduce", "ordered_direct", layout, plan, elements);
  exchange(builder, plan, std::vector<ElementRange>(layout.owners.size(), {0, elements}),
           buffer_view(BufferKind::kOutput));
  return builder.finish();
}

Schedule ordered_reduce_scatter(const OrderedLayout& layout, std::int64_t elements) {
  const OrderedPlan plan = plan_ordered(layout);
  ScheduleBuilder builder = start("reduce_scatter", "ordered_exchange", layout, plan, elements);
  const std::vector<ElementRange> shards = shards_of(elements, builder.ranks());
  std::vector<std::int64_t> begins;
  for (std::size_t r = 0; r < shards.size(); ++r) {
    builder.sizes().output_elements[r] = shards[r].size();
    begins.push_back(shards[r].begin);
  }
  exchange(builder, plan, shards, buffer_view(BufferKind::kOutput, std::move(begins)));
  return builder.finish();
}

Schedule ordered_reduce(const OrderedLayout& layout, int root, std::int64_t elements) {
  const OrderedPlan plan = plan_ordered(layout);
  ScheduleBuilder builder = start("reduce", "ordered_exchange", layout, plan, elements);
  const int ranks = builder.ranks();
  if (root < 0 || root >= ranks) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("rank {} cannot be the root of {} ranks", root, ranks));
  }
  builder.sizes().root = root;
  const std::vector<ElementRange> shards = shards_of(elements, ranks);
  const auto results = [root](int rank, ElementRange range) {
    if (rank == root) return Chunk{BufferKind::kOutput, 0, range.begin, range.size()};
    return Chunk{BufferKind::kWork, 0, 0, range.size()};
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == root) continue;
    builder.sizes().output_elements[static_cast<std::size_t>(rank)] = 0;
    builder.need_work(rank, shards[static_cast<std::size_t>(rank)].size());
  }
  exchange(builder, plan, shards, results);
  for (int step = 1; step < ranks; ++step) {
    const int rank = wrap(root - step, ranks);
    const ElementRange own = shards[static_cast<std::size_t>(rank)];
    builder.transfer(1, rank, results(rank, own), root, results(root, own));
  }
  return builder.finish();
}

}  // namespace convoy::spec

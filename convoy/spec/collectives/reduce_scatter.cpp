// Builds reduce-scatter schedules, each of one phase.
#include "convoy/spec/collectives/reduce_scatter.h"

#include <utility>

#include "convoy/spec/phases/phases.h"

namespace convoy::spec {
namespace {

// A schedule in which rank r ends with shard r, and the views of it.
struct Frame {
  ScheduleBuilder builder;
  Team team;
  View from = buffer_view(BufferKind::kInput);
  View sums = buffer_view(BufferKind::kWork);
  View results = buffer_view(BufferKind::kOutput);
};

Frame frame(const char* algorithm, int ranks, std::int64_t elements, const std::vector<int>& order) {
  Frame made{ScheduleBuilder("reduce_scatter", algorithm, ranks, elements), {ranks_in_order(ranks, order), {}}};
  made.builder.sizes().contributions = ranks;
  for (const int rank : made.team.ranks) made.team.parts.push_back(shard_range(elements, ranks, rank));
  std::vector<std::int64_t> begins;
  for (int rank = 0; rank < ranks; ++rank) {
    const ElementRange shard = shard_range(elements, ranks, rank);
    begins.push_back(shard.begin);
    made.builder.sizes().output_elements[static_cast<std::size_t>(rank)] = shard.size();
  }
  made.results = buffer_view(BufferKind::kOutput, std::move(begins));
  return made;
}

}  // namespace

Schedule ring_reduce_scatter(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  Frame made = frame("ring", ranks, elements, options.order);
  for (int rank = 0; rank < ranks && ranks > 2; ++rank) made.builder.need_work(rank, elements);
  ring_reduce_scatter(made.builder, 0, made.team, made.from, made.sums, made.results, true);
  return made.builder.finish();
}

Schedule halving_reduce_scatter(int ranks, std::int64_t elements) {
  Frame made = frame("halving", ranks, elements, {});
  for (int rank = 0; rank < ranks && ranks > 2; ++rank) made.builder.need_work(rank, elements);
  folded_reduce_scatter(made.builder, 0, made.team, made.from, made.sums, made.results, true);
  return made.builder.finish();
}

Schedule pairwise_reduce_scatter(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  Frame made = frame("pairwise", ranks, elements, options.order);
  // The output is a rank's own shard and nothing else, so it may hold the sum on the way.
  pairwise_reduce_scatter(made.builder, 0, made.team, made.from, made.results, made.results, true);
  return made.builder.finish();
}

}  // namespace convoy::spec

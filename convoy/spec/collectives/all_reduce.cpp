// Builds all-reduce schedules, each of one phase.
#include "convoy/spec/collectives/all_reduce.h"

#include "convoy/spec/phases/all_reduce_phases.h"

namespace convoy::spec {
namespace {

Schedule all_reduce(const char* algorithm, AllReducePhase phase, int ranks, std::int64_t elements,
                    const CollectiveOptions& options) {
  ScheduleBuilder builder("all_reduce", algorithm, ranks, elements);
  builder.sizes().contributions = ranks;
  phase(builder, 0, ranks_in_order(ranks, options.order), {0, elements}, buffer_view(BufferKind::kInput),
        buffer_view(BufferKind::kOutput), options.chunk_elements);
  return builder.finish();
}

}  // namespace

Schedule ring_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  return all_reduce("ring", ring_all_reduce_phase, ranks, elements, options);
}

Schedule halving_doubling_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  return all_reduce("halving_doubling", halving_doubling_all_reduce_phase, ranks, elements, options);
}

Schedule recursive_doubling_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  return all_reduce("recursive_doubling", recursive_doubling_all_reduce_phase, ranks, elements, options);
}

Schedule double_binary_tree_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  return all_reduce("double_binary_tree", double_binary_tree_all_reduce_phase, ranks, elements, options);
}

Schedule direct_all_reduce(int ranks, std::int64_t elements, const CollectiveOptions& options) {
  return all_reduce("direct", direct_all_reduce_phase, ranks, elements, options);
}

}  // namespace convoy::spec

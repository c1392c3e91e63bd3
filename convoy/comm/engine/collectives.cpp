// The collective operations by name: each builds a schedule (or finds it among the newest) and submits it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "convoy/comm/group.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/rooted.h"

namespace convoy::comm {
namespace {

Collective make_collective(std::shared_ptr<const spec::Schedule> schedule, std::vector<Buffer> inputs, Buffer output,
                           DType dtype, ReduceOp reduce) {
  Collective collective;
  collective.schedule = std::move(schedule);
  collective.inputs = std::move(inputs);
  collective.output = std::move(output);
  collective.dtype = dtype;
  collective.reduce = reduce;
  return collective;
}

Work submit(Group& group, std::shared_ptr<const spec::Schedule> schedule, std::vector<Buffer> inputs, Buffer output,
            DType dtype, ReduceOp reduce) {
  return group.submit(make_collective(std::move(schedule), std::move(inputs), std::move(output), dtype, reduce));
}

// The layout in which each rank brings one leaf.
spec::OrderedLayout one_leaf_each(int ranks) {
  spec::OrderedLayout layout;
  layout.leaves = ranks;
  for (int rank = 0; rank < ranks; ++rank) layout.owners.push_back({rank, rank + 1});
  return layout;
}

std::string layout_key(const spec::OrderedLayout& layout) {
  std::string key = fmt::format("{}", layout.leaves);
  for (const spec::ReplicaRange& range : layout.owners) key += fmt::format(" {}-{}", range.begin, range.end);
  return key;
}

// A segment's shards, one for each rank, of which a rank reads and writes two at a time: they shall stay in its cache.
std::int64_t segment_elements(const Group& group, DType dtype) {
  constexpr std::int64_t kShardBytes = std::int64_t{1} << 19;
  return group.size() * kShardBytes / static_cast<std::int64_t>(element_bytes(dtype));
}

// Both sum along the same tree, so the size decides on speed alone.
std::shared_ptr<const spec::Schedule> all_reduce_schedule(Group& group, std::int64_t elements, DType dtype) {
  if (static_cast<std::size_t>(elements) * element_bytes(dtype) <= group.small_bytes()) {
    return group.schedule(fmt::format("direct_all_reduce {}", elements),
                          [&] { return spec::direct_all_reduce(group.size(), elements); });
  }
  return group.schedule(fmt::format("all_reduce {} {}", elements, to_string(dtype)), [&] {
    return spec::ordered_all_reduce(one_leaf_each(group.size()), elements, segment_elements(group, dtype));
  });
}

void check_ranks(const Group& group, const char* what, std::size_t ranks) {
  if (ranks == static_cast<std::size_t>(group.size())) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} for {} ranks in group '{}' of {}", what, ranks, group.name(), group.size()));
}

}  // namespace

Work ordered_all_reduce_async(Group& group, const spec::OrderedLayout& layout, std::vector<Buffer> inputs,
                              Buffer output, DType dtype, ReduceOp reduce) {
  check_ranks(group, "an ordered all_reduce", layout.owners.size());
  const std::int64_t elements = output.elements();
  auto schedule =
      group.schedule(fmt::format("ordered_all_reduce {} {} {}", elements, to_string(dtype), layout_key(layout)),
                     [&] { return spec::ordered_all_reduce(layout, elements, segment_elements(group, dtype)); });
  return submit(group, std::move(schedule), std::move(inputs), std::move(output), dtype, reduce);
}

Work all_reduce_async(Group& group, Buffer input, Buffer output, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = input.elements();
  auto schedule = all_reduce_schedule(group, elements, dtype);
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, reduce);
}

void all_reduce(Group& group, const void* input, void* output, std::int64_t elements, DType dtype, ReduceOp reduce) {
  const auto* const from = static_cast<const std::byte*>(input);
  auto* const to = static_cast<std::byte*>(output);
  if (group.try_all_reduce(from, to, elements, dtype, reduce)) return;
  group.run(make_collective(all_reduce_schedule(group, elements, dtype),
                            {Buffer({Extent{const_cast<std::byte*>(from), elements}})}, Buffer({Extent{to, elements}}),
                            dtype, reduce));
}

Work reduce_scatter_async(Group& group, Buffer input, Buffer output, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = input.elements();
  auto schedule = group.schedule(fmt::format("reduce_scatter {}", elements),
                                 [&] { return spec::ordered_reduce_scatter(one_leaf_each(group.size()), elements); });
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, reduce);
}

Work all_gather_async(Group& group, Buffer input, Buffer output, const std::vector<std::int64_t>& parts, DType dtype) {
  check_ranks(group, "an all_gather", parts.size());
  auto schedule = group.schedule(fmt::format("all_gather {}", fmt::join(parts, " ")),
                                 [&] { return spec::direct_all_gather(parts); });
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, ReduceOp::kSum);
}

Work broadcast_async(Group& group, Buffer buffer, int root, DType dtype) {
  const std::int64_t elements = buffer.elements();
  auto schedule = group.schedule(fmt::format("broadcast {} from {}", elements, root),
                                 [&] { return spec::binomial_broadcast(group.size(), root, elements); });
  std::vector<Buffer> inputs;
  if (group.rank() == root) inputs.push_back(buffer);
  return submit(group, std::move(schedule), std::move(inputs), std::move(buffer), dtype, ReduceOp::kSum);
}

void barrier(Group& group) {
  auto schedule = group.schedule("barrier", [&] { return spec::dissemination_barrier(group.size()); });
  group.run(make_collective(std::move(schedule), {}, Buffer(), DType::kUInt8, ReduceOp::kSum));
}

double all_reduce_number(Group& group, double value, ReduceOp reduce) {
  all_reduce(group, &value, &value, 1, DType::kFloat64, reduce);
  return value;
}

}  // namespace convoy::comm

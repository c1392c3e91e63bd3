// The collective operations by name: each builds a schedule (or finds it among the newest) and submits it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "convoy/comm/group.h"
#include "convoy/spec/collectives/all_gather.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/ordered.h"
#include "convoy/spec/collectives/rooted.h"

namespace convoy::comm {
namespace {

Work submit(Group& group, std::shared_ptr<const spec::Schedule> schedule, std::vector<Buffer> inputs, Buffer output,
            DType dtype, ReduceOp reduce) {
  Collective collective;
  collective.schedule = std::move(schedule);
  collective.inputs = std::move(inputs);
  collective.output = std::move(output);
  collective.dtype = dtype;
  collective.reduce = reduce;
  return group.submit(std::move(collective));
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
  auto schedule = group.schedule(fmt::format("ordered_all_reduce {} {}", elements, layout_key(layout)),
                                 [&] { return spec::ordered_all_reduce(layout, elements); });
  return submit(group, std::move(schedule), std::move(inputs), std::move(output), dtype, reduce);
}

Work all_reduce_async(Group& group, Buffer input, Buffer output, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = input.elements();
  auto schedule = group.schedule(fmt::format("all_reduce {}", elements),
                                 [&] { return spec::ordered_all_reduce(one_leaf_each(group.size()), elements); });
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, reduce);
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
  submit(group, std::move(schedule), {}, Buffer(), DType::kUInt8, ReduceOp::kSum).wait();
}

double all_reduce_number(Group& group, double value, ReduceOp reduce) {
  std::array<double, 1> number{value};
  const Buffer buffer{std::span<double>(number)};
  all_reduce_async(group, buffer, buffer, DType::kFloat64, reduce).wait();
  return number[0];
}

}  // namespace convoy::comm

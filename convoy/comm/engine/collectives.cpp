// The collective operations by name: each builds a schedule (or finds it among the newest) and submits it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <utility>

#include "convoy/comm/engine/selection.h"
#include "convoy/comm/group.h"
#include "convoy/spec/collectives/all_reduce.h"
#include "convoy/spec/collectives/barrier.h"
#include "convoy/spec/collectives/ordered.h"

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

std::string layout_key(const spec::OrderedLayout& layout) {
  std::string key = fmt::format("{}", layout.leaves);
  for (const spec::ReplicaRange& range : layout.owners) key += fmt::format(" {}-{}", range.begin, range.end);
  return key;
}

// What a collective's shape is when each rank brings one buffer.
spec::CollectiveShape shape_of(const Group& group, std::int64_t elements) {
  spec::CollectiveShape shape;
  shape.ranks = group.size();
  shape.elements = elements;
  return shape;
}

// Returns the schedule that the group chooses.
spec::Schedule build(Group& group, const std::string& collective, const spec::CollectiveShape& shape, DType dtype,
                     ReduceOp reduce) {
  if (group.selection() != nullptr) return group.selection()->build(collective, shape, dtype, reduce);
  return Selection(group.size(), true, {}).build(collective, shape, dtype, reduce);
}

// Small ones sum along the tree of the ordered algorithms, so that there the size decides on speed alone.
std::shared_ptr<const spec::Schedule> all_reduce_schedule(Group& group, std::int64_t elements, DType dtype,
                                                          ReduceOp reduce) {
  if (static_cast<std::size_t>(elements) * element_bytes(dtype) <= group.small_bytes()) {
    return group.schedule(fmt::format("direct_all_reduce {}", elements),
                          [&] { return spec::direct_all_reduce(group.size(), elements); });
  }
  return group.schedule(fmt::format("all_reduce {} {} {}", elements, to_string(dtype), to_string(reduce)),
                        [&] { return build(group, "all_reduce", shape_of(group, elements), dtype, reduce); });
}

std::shared_ptr<const spec::Schedule> ordered_schedule(Group& group, const spec::OrderedLayout& layout,
                                                       std::int64_t elements, DType dtype, ReduceOp reduce) {
  const std::string key =
      fmt::format("ordered_all_reduce {} {} {} {}", elements, to_string(dtype), to_string(reduce), layout_key(layout));
  return group.schedule(key, [&] {
    spec::CollectiveShape shape = shape_of(group, elements);
    shape.layout = layout;
    return build(group, "all_reduce", shape, dtype, reduce);
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
  auto schedule = ordered_schedule(group, layout, elements, dtype, reduce);
  return submit(group, std::move(schedule), std::move(inputs), std::move(output), dtype, reduce);
}

Work compressed_all_reduce_async(Group& group, const spec::OrderedLayout& layout, std::vector<Buffer> inputs,
                                 Buffer output, const Compression& compression, ReduceOp reduce, Buffer residual) {
  check_ranks(group, "an ordered all_reduce", layout.owners.size());
  const std::int64_t elements = output.elements();
  Collective collective = make_collective(ordered_schedule(group, layout, elements, DType::kFloat32, reduce),
                                          std::move(inputs), std::move(output), DType::kFloat32, reduce);
  collective.compression = compression;
  collective.residual = std::move(residual);
  return group.submit(std::move(collective));
}

Work ordered_reduce_scatter_async(Group& group, const spec::OrderedLayout& layout, std::vector<Buffer> inputs,
                                  Buffer output, std::int64_t elements, DType dtype) {
  check_ranks(group, "an ordered reduce_scatter", layout.owners.size());
  auto schedule = group.schedule(
      fmt::format("ordered_reduce_scatter {} {} {}", elements, to_string(dtype), layout_key(layout)),
      [&] { return spec::ordered_reduce_scatter(layout, elements); });
  return submit(group, std::move(schedule), std::move(inputs), std::move(output), dtype, ReduceOp::kSum);
}

Work all_reduce_async(Group& group, Buffer input, Buffer output, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = input.elements();
  auto schedule = all_reduce_schedule(group, elements, dtype, reduce);
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, reduce);
}

void all_reduce(Group& group, const void* input, void* output, std::int64_t elements, DType dtype, ReduceOp reduce) {
  const auto* const from = static_cast<const std::byte*>(input);
  auto* const to = static_cast<std::byte*>(output);
  if (group.try_all_reduce(from, to, elements, dtype, reduce)) return;
  group.run(make_collective(all_reduce_schedule(group, elements, dtype, reduce),
                            {Buffer({Extent{const_cast<std::byte*>(from), elements}})}, Buffer({Extent{to, elements}}),
                            dtype, reduce));
}

Work reduce_scatter_async(Group& group, Buffer input, Buffer output, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = input.elements();
  auto schedule =
      group.schedule(fmt::format("reduce_scatter {} {} {}", elements, to_string(dtype), to_string(reduce)),
                     [&] { return build(group, "reduce_scatter", shape_of(group, elements), dtype, reduce); });
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, reduce);
}

Work all_gather_async(Group& group, Buffer input, Buffer output, const std::vector<std::int64_t>& parts, DType dtype) {
  check_ranks(group, "an all_gather", parts.size());
  auto schedule = group.schedule(fmt::format("all_gather {} {}", to_string(dtype), fmt::join(parts, " ")), [&] {
    spec::CollectiveShape shape = shape_of(group, std::accumulate(parts.begin(), parts.end(), std::int64_t{0}));
    shape.parts = parts;
    return build(group, "all_gather", shape, dtype, ReduceOp::kSum);
  });
  return submit(group, std::move(schedule), {std::move(input)}, std::move(output), dtype, ReduceOp::kSum);
}

Work broadcast_async(Group& group, Buffer buffer, int root, DType dtype) {
  const std::int64_t elements = buffer.elements();
  auto schedule = group.schedule(fmt::format("broadcast {} {} from {}", elements, to_string(dtype), root), [&] {
    spec::CollectiveShape shape = shape_of(group, elements);
    shape.root = root;
    return build(group, "broadcast", shape, dtype, ReduceOp::kSum);
  });
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

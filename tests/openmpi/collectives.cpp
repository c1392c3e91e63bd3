// What collectives give over Open MPI.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "convoy/comm/native_schedule.h"
#include "convoy/spec/collectives/ordered.h"
#include "tests/contract/comm/by_definition.h"
#include "tests/contract/comm/reference.h"
#include "tests/openmpi/scenes.h"

namespace convoy::comm {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr std::int64_t kSizes[] = {0, 1, 3, 1023, 65537};

using SharedSchedule = std::shared_ptr<const spec::Schedule>;

SharedSchedule shared(spec::Schedule schedule) { return std::make_shared<const spec::Schedule>(std::move(schedule)); }

// Runs a schedule on numbers whose sums wrap round, in any order alike.
void try_schedule(Group& group, const SharedSchedule& schedule, const spec::CollectiveShape& shape, bool in_place) {
  const auto me = static_cast<std::size_t>(group.rank());
  Collective collective;
  collective.schedule = schedule;
  collective.dtype = DType::kInt64;
  std::vector<Numbers> inputs;
  for (int k = 0; k < schedule->inputs[me]; ++k) {
    Numbers& input = inputs.emplace_back();
    for (std::int64_t e = 0; e < schedule->input_elements[me]; ++e) input.push_back(value(group.rank(), k, e));
  }
  for (Numbers& input : inputs) collective.inputs.emplace_back(std::span<std::int64_t>(input));
  Numbers apart(static_cast<std::size_t>(schedule->output_elements[me]), -1);
  Numbers& output = in_place && !inputs.empty() ? inputs.front() : apart;
  collective.output = Buffer(std::span<std::int64_t>(output));
  group.submit(std::move(collective)).wait();
  expect(
      output == expected(*schedule, shape, group.rank()),
      fmt::format("{} {} of {} on rank {} of {}{} is not what it should be", schedule->collective, schedule->algorithm,
                  schedule->elements, group.rank(), group.size(), in_place ? ", in place" : ""));
}

void try_both(Group& group, const SharedSchedule& schedule, const spec::CollectiveShape& shape) {
  try_schedule(group, schedule, shape, false);
  if (schedule->collective == "all_reduce" || schedule->collective == "broadcast") {
    try_schedule(group, schedule, shape, true);
  }
}

// All-reduces one value set of each rank and compares bits.
void try_type(Group& group, const SharedSchedule& schedule, DType dtype, ReduceOp reduce) {
  const std::int64_t elements = schedule->elements;
  Bytes data = values_as(dtype, group.rank(), elements);
  // In pieces that lie apart, each rank's in another way.
  const std::int64_t cut = elements / (2 + group.rank());
  Bytes second(data.begin() + cut * static_cast<std::int64_t>(element_bytes(dtype)), data.end());
  const Buffer buffer({Extent{data.data(), cut}, Extent{second.data(), elements - cut}});
  Collective collective;
  collective.schedule = schedule;
  collective.inputs = {buffer};
  collective.output = buffer;
  collective.dtype = dtype;
  collective.reduce = reduce;
  group.submit(std::move(collective)).wait();
  std::copy(second.begin(), second.end(), data.begin() + cut * static_cast<std::int64_t>(element_bytes(dtype)));
  expect(data == reference_as(dtype, group.size(), elements, reduce),
         fmt::format("{} of {} by {} differs from the reference on rank {}", to_string(reduce), to_string(dtype),
                     schedule->algorithm, group.rank()));
}

ErrorCode code_of(const std::function<void()>& call, const std::string& words) {
  try {
    call();
  } catch (const Error& error) {
    expect(std::string(error.what()).find(words) != std::string::npos,
           fmt::format("'{}' lacks '{}'", error.what(), words));
    return error.code();
  }
  throw Error(ErrorCode::kFailed, fmt::format("nothing was refused with '{}'", words));
}

SharedSchedule native(const Group& group, const std::string& collective, std::int64_t elements) {
  spec::CollectiveShape shape;
  shape.ranks = group.size();
  shape.elements = elements;
  return shared(native_schedule(collective, shape));
}

// Sums of small whole numbers are exact in any order.
void try_native_mean(Group& group) {
  std::vector<float> values(1000);
  std::vector<float> mean(1000);
  for (std::size_t e = 0; e < values.size(); ++e) {
    values[e] = static_cast<float>(e + static_cast<std::size_t>(group.rank()));
    const auto ranks = static_cast<float>(group.size());
    mean[e] = (static_cast<float>(e) * ranks + ranks * (ranks - 1) / 2) / ranks;
  }
  Collective collective;
  collective.schedule = native(group, "all_reduce", 1000);
  collective.inputs = {Buffer(std::span<float>(values))};
  collective.output = collective.inputs.front();
  collective.reduce = ReduceOp::kMean;
  group.run(std::move(collective));
  expect(values == mean, "the native mean is not the mean");
}

// Blocks and parts of many sizes, some of them empty.
void try_uneven(Group& group) {
  spec::CollectiveShape shape;
  shape.ranks = group.size();
  shape.root = group.size() - 1;
  for (int rank = 0; rank < group.size(); ++rank) {
    shape.parts.push_back(rank % 3 * 100);
    std::vector<std::int64_t>& row = shape.counts.emplace_back();
    for (int to = 0; to < group.size(); ++to) row.push_back((rank + 2 * to) % 4 * 50);
  }
  shape = spec::with_defaults(shape);
  for (const char* name : {"all_gather", "gather", "scatter", "all_to_all"}) {
    try_schedule(group, shared(native_schedule(name, shape)), shape, false);
  }
}

}  // namespace

void play_collectives(const Scene& scene) {
  const auto group = scene.join(1, kTimeout);
  for (const std::int64_t elements : kSizes) {
    for (const spec::Algorithm& algorithm : spec::algorithms()) {
      const spec::CollectiveShape shape = shape_of(algorithm, group->size(), elements);
      try_both(*group, shared(spec::build(algorithm.collective, algorithm.name, shape)), shape);
    }
    for (const std::string& collective : spec::collectives()) {
      spec::CollectiveShape shape;
      shape.ranks = group->size();
      shape.elements = elements;
      shape.root = group->size() / 2;
      shape = spec::with_defaults(shape);
      try_both(*group, shared(native_schedule(collective, shape)), shape);
    }
  }
  barrier(*group);
}

void play_details(const Scene& scene) {
  const auto group = scene.join(1, kTimeout);
  const auto ordered = shared(spec::ordered_all_reduce(spec::one_leaf_each(group->size()), 70001));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kBFloat16}) {
    for (const ReduceOp reduce : {ReduceOp::kSum, ReduceOp::kMax}) try_type(*group, ordered, dtype, reduce);
  }
  const auto library = native(*group, "all_reduce", 70001);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64}) {
    for (const ReduceOp reduce : {ReduceOp::kMin, ReduceOp::kMax}) try_type(*group, library, dtype, reduce);
  }
  for (const DType dtype : {DType::kInt32, DType::kInt64}) try_type(*group, library, dtype, ReduceOp::kSum);
  try_native_mean(*group);
  try_uneven(*group);
  // What MPI cannot do is refused before anybody is asked, and the group goes on.
  const auto halves = [&] { try_type(*group, library, DType::kBFloat16, ReduceOp::kSum); };
  expect(code_of(halves, "no sum of bfloat16") == ErrorCode::kNotSupported, "MPI has no bfloat16");
  barrier(*group);
  // Both sides are named before MPI is called, where sizes differ and where only parts do.
  const auto differ = [&] {
    const auto schedule = native(*group, "all_reduce", group->rank() == 0 ? 5 : 4);
    try_schedule(*group, schedule, {}, false);
  };
  expect(code_of(differ, "of 5 int64") == ErrorCode::kDesync, "sizes are compared");
  const auto another = scene.join(2, kTimeout);
  const auto differ_in_parts = [&] {
    spec::CollectiveShape shape;
    shape.ranks = another->size();
    shape.parts.assign(static_cast<std::size_t>(another->size()), 10);
    // The same total, and the same part of rank 2.
    if (another->rank() == 2) std::tie(shape.parts[0], shape.parts[1]) = std::tuple(7, 13);
    try_schedule(*another, shared(native_schedule("all_gather", shape)), shape, false);
  };
  expect(code_of(differ_in_parts, "with another layout or algorithm") == ErrorCode::kDesync, "parts are compared");
  const auto third = scene.join(3, kTimeout);
  const auto differ_in_blocks = [&] {
    const auto ranks = static_cast<std::size_t>(third->size());
    spec::CollectiveShape shape;
    shape.ranks = third->size();
    shape.counts.assign(ranks, std::vector<std::int64_t>(ranks, 10));
    // As much from each rank and for each rank.
    if (third->rank() == 2) {
      shape.counts[0][0] = shape.counts[1][1] = 11;
      shape.counts[0][1] = shape.counts[1][0] = 9;
    }
    try_schedule(*third, shared(native_schedule("all_to_all", shape)), shape, false);
  };
  expect(code_of(differ_in_blocks, "with another layout or algorithm") == ErrorCode::kDesync, "blocks are compared");
}

}  // namespace convoy::comm

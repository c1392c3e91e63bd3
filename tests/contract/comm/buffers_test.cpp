// Every algorithm with every element type, and with memory in single elements that lie apart, at odd addresses.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "convoy/base/half.h"
#include "convoy/spec/collectives/registry.h"
#include "tests/contract/comm/by_definition.h"
#include "tests/contract/comm/worlds.h"

namespace convoy::comm {
namespace {

// Whole numbers so small that their sums are exact in every type.
std::int64_t small_value(int rank, int input, std::int64_t element) { return (rank * 7 + input * 3 + element) % 5; }

void write(DType dtype, std::byte* to, std::int64_t value) {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  switch (dtype) {
    case DType::kFloat32: return put(static_cast<float>(value));
    case DType::kFloat64: return put(static_cast<double>(value));
    case DType::kInt32: return put(static_cast<std::int32_t>(value));
    case DType::kInt64: return put(value);
    case DType::kUInt8: return put(static_cast<std::uint8_t>(value));
    case DType::kBFloat16: return put(bfloat16_of_float(static_cast<float>(value)));
    case DType::kFloat16: return put(float16_of_float(static_cast<float>(value)));
  }
}

bool holds(DType dtype, const std::byte* at, std::int64_t value) {
  std::byte wanted[8];
  write(dtype, wanted, value);
  return std::memcmp(at, wanted, element_bytes(dtype)) == 0;
}

// `count` elements, each on its own: `skew` bytes beyond an aligned address, and as far apart as two elements.
std::vector<Extent> strided(RankWorld& world, DType dtype, std::int64_t count, std::size_t skew) {
  const std::size_t stride = 2 * element_bytes(dtype);
  std::byte* const memory = world.memory(static_cast<std::size_t>(count) * stride + 1, skew);
  std::vector<Extent> extents;
  for (std::int64_t e = 0; e < count; ++e) extents.push_back({memory + static_cast<std::size_t>(e) * stride, 1});
  return extents;
}

std::vector<Extent> whole(RankWorld& world, DType dtype, std::int64_t count, std::size_t skew) {
  return {Extent{world.memory(static_cast<std::size_t>(count) * element_bytes(dtype) + 1, skew), count}};
}

template <typename Visit>
void each_element(const std::vector<Extent>& extents, DType dtype, Visit visit) {
  std::int64_t element = 0;
  for (const Extent& extent : extents) {
    for (std::int64_t i = 0; i < extent.elements; ++i) {
      visit(extent.data + static_cast<std::size_t>(i) * element_bytes(dtype), element++);
    }
  }
}

struct Case {
  DType dtype = DType::kFloat32;
  std::int64_t elements = 0;
  bool strides = false;
};

// Returns whether the algorithm ran; sums of 16-bit types are refused where they would be rounded at every hop.
bool run(RankWorld& world, const spec::Algorithm& algorithm, const Case& tried) {
  const spec::CollectiveShape shape = shape_of(algorithm, world.size(), tried.elements);
  Collective collective;
  collective.schedule =
      std::make_shared<const spec::Schedule>(spec::build(algorithm.collective, algorithm.name, shape));
  const spec::Schedule& schedule = *collective.schedule;
  const auto me = static_cast<std::size_t>(world.rank());
  collective.dtype = tried.dtype;
  const auto memory = tried.strides ? strided : whole;
  for (int k = 0; k < schedule.inputs[me]; ++k) {
    const std::vector<Extent> input = memory(world, tried.dtype, schedule.input_elements[me], 1);
    each_element(input, tried.dtype, [&](std::byte* at, std::int64_t element) {
      write(tried.dtype, at, small_value(world.rank(), k, element));
    });
    collective.inputs.emplace_back(input);
  }
  const std::vector<Extent> output = memory(world, tried.dtype, schedule.output_elements[me], 3);
  collective.output = Buffer(output);
  try {
    world.group().submit(collective).wait();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << error.what();
    return false;
  }
  const Numbers wanted = expected(schedule, shape, world.rank(), small_value);
  each_element(output, tried.dtype, [&](std::byte* at, std::int64_t element) {
    EXPECT_TRUE(holds(tried.dtype, at, wanted[static_cast<std::size_t>(element)]))
        << algorithm.collective << " " << algorithm.name << " of " << to_string(tried.dtype) << ", element " << element;
  });
  return true;
}

class Buffers : public ::testing::TestWithParam<int> {};

TEST_P(Buffers, OfEveryTypeWorkWithEveryAlgorithm) {
  run_world(transport_kind(GetParam()), 3, GroupOptions{}, [](RankWorld& world) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUInt8,
                              DType::kBFloat16, DType::kFloat16}) {
      int ran = 0;
      for (const spec::Algorithm& algorithm : spec::algorithms()) {
        for (const std::int64_t elements : {1, 1023}) ran += run(world, algorithm, {dtype, elements, false}) ? 1 : 0;
      }
      const bool sums_everywhere = dtype != DType::kUInt8 && dtype != DType::kBFloat16 && dtype != DType::kFloat16;
      const int all = 2 * static_cast<int>(spec::algorithms().size());
      EXPECT_TRUE(sums_everywhere ? ran == all : ran > all / 4 && ran < all) << to_string(dtype) << " " << ran;
    }
  });
}

TEST_P(Buffers, OfSingleElementsAtOddAddressesWorkWithEveryAlgorithm) {
  run_world(transport_kind(GetParam()), 4, GroupOptions{}, [](RankWorld& world) {
    for (const spec::Algorithm& algorithm : spec::algorithms()) {
      EXPECT_TRUE(run(world, algorithm, {DType::kFloat32, 203, true})) << algorithm.name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Buffers, all_transport_kinds(),
                         [](const auto& info) { return transport_kind(info.param).name; });

}  // namespace
}  // namespace convoy::comm

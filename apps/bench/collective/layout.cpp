// Inputs, and what must become of them.
#include "apps/bench/collective/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/half.h"

namespace convoy::bench {
namespace {

constexpr std::int64_t kSamples = 61;

// 1 to 32: it goes on by one a place, with the rank and with each block, so that what lies in a wrong place shows.
template <typename T>
T value(int rank, std::int64_t place) {
  const auto at = static_cast<std::uint32_t>(place);
  return static_cast<T>(1 + ((at + (at >> 12) + 5 * static_cast<std::uint32_t>(rank)) & 31));
}

// A 16-bit type as the bench computes with it: as a float that is rounded when it is stored.
template <std::uint16_t (*kOf)(float), float (*kTo)(std::uint16_t)>
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(std::uint32_t number) : bits(kOf(static_cast<float>(number))) {}
  explicit Half(float number) : bits(kOf(number)) {}
  explicit operator float() const { return kTo(bits); }
  friend bool operator==(const Half& a, const Half& b) { return a.bits == b.bits; }
};
using BFloat16 = Half<bfloat16_of_float, float_of_bfloat16>;
using Float16 = Half<float16_of_float, float_of_float16>;

// What sums of a type are computed in.
template <typename T>
using Sum = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

// Calls `body` with a value of the type.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kFloat32: return body(float{});
    case DType::kFloat64: return body(double{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kInt64: return body(std::int64_t{});
    case DType::kUInt8: return body(std::uint8_t{});
    case DType::kBFloat16: return body(BFloat16{});
    case DType::kFloat16: return body(Float16{});
  }
}

template <typename T>
T expected(const Stretch& stretch, std::int64_t at, int ranks) {
  if (stretch.rank >= 0) return value<T>(stretch.rank, stretch.place + at);
  Sum<T> sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum = static_cast<Sum<T>>(sum + static_cast<Sum<T>>(value<T>(rank, stretch.place + at)));
  }
  return static_cast<T>(sum);
}

template <typename T>
void check_stretch(const T* data, const Stretch& stretch, std::int64_t begin, int ranks, bool all,
                   const std::string& what) {
  const std::int64_t step = all ? 1 : std::max<std::int64_t>(1, stretch.count / kSamples);
  for (std::int64_t i = 0; i < stretch.count; i += step) {
    const T right = expected<T>(stretch, i, ranks);
    if (data[begin + i] == right) continue;
    throw Error(ErrorCode::kFailed, fmt::format("{}: element {} is {} where {} is right", what, begin + i,
                                                static_cast<Sum<T>>(data[begin + i]), static_cast<Sum<T>>(right)));
  }
}

// The inputs of the ranks, one after another, by the number of their part.
std::vector<Stretch> parts_of(const std::vector<std::int64_t>& lengths, const std::vector<int>& part_of) {
  std::vector<Stretch> parts(lengths.size());
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const std::size_t part = part_of.empty() ? rank : static_cast<std::size_t>(part_of[rank]);
    parts[part] = {lengths[rank], static_cast<int>(rank), 0};
  }
  return parts;
}

// Where a rank's part begins.
std::int64_t part_begin(const std::vector<std::int64_t>& lengths, const std::vector<int>& part_of, int rank) {
  std::int64_t begin = 0;
  for (const Stretch& part : parts_of(lengths, part_of)) {
    if (part.rank == rank) return begin;
    begin += part.count;
  }
  return begin;
}

std::vector<Stretch> dealt(const std::vector<std::vector<std::int64_t>>& counts, int rank) {
  std::vector<Stretch> output;
  const auto me = static_cast<std::size_t>(rank);
  for (std::size_t source = 0; source < counts.size(); ++source) {
    const auto& row = counts[source];
    const auto place = std::accumulate(row.begin(), row.begin() + rank, std::int64_t{0});
    output.push_back({row[me], static_cast<int>(source), place});
  }
  return output;
}

}  // namespace

std::int64_t Layout::output_elements() const {
  std::int64_t elements = 0;
  for (const Stretch& stretch : output) elements += stretch.count;
  return elements;
}

Layout layout_of(const spec::Schedule& schedule, int rank) {
  const auto me = static_cast<std::size_t>(rank);
  const std::string& op = schedule.collective;
  Layout layout;
  layout.input = schedule.inputs[me] > 0 ? schedule.input_elements[me] : 0;
  const std::int64_t output = schedule.output_elements[me];
  layout.in_place = op == "all_reduce" || op == "broadcast";
  if (output == 0) return layout;
  if (op == "all_reduce" || op == "reduce") {
    layout.output = {{output, -1, 0}};
  } else if (op == "reduce_scatter") {
    layout.output = {{output, -1, part_begin(schedule.output_elements, schedule.part_of, rank)}};
  } else if (op == "all_gather" || op == "gather") {
    layout.output = parts_of(schedule.input_elements, schedule.part_of);
  } else if (op == "broadcast") {
    layout.output = {{output, schedule.root, 0}};
  } else if (op == "scatter") {
    layout.output = {{output, schedule.root, part_begin(schedule.output_elements, schedule.part_of, rank)}};
  } else if (op == "all_to_all") {
    layout.output = dealt(schedule.counts, rank);
  }
  return layout;
}

Layout even_layout(const std::string& op, int rank, int ranks, std::int64_t elements) {
  // The same words as a schedule's, so that there is one meaning.
  spec::Schedule even;
  const auto count = static_cast<std::size_t>(ranks);
  const bool divides_input = op == "all_gather" || op == "gather";
  const bool divides_output = op == "reduce_scatter" || op == "scatter";
  const bool rooted_input = op == "broadcast" || op == "scatter";
  const bool rooted_output = op == "reduce" || op == "gather";
  even.collective = op;
  even.root = 0;
  even.inputs.assign(count, rooted_input ? 0 : 1);
  even.inputs[0] = 1;
  even.input_elements.assign(count, divides_input ? elements / ranks : elements);
  even.output_elements.assign(count, rooted_output ? 0 : divides_output ? elements / ranks : elements);
  even.output_elements[0] = divides_output ? elements / ranks : elements;
  even.counts.assign(count, std::vector<std::int64_t>(count, elements / ranks));
  return layout_of(even, rank);
}

void fill(DType dtype, std::byte* data, std::int64_t elements, int rank) {
  with_type(dtype, [&]<typename T>(T) {
    auto* const values = reinterpret_cast<T*>(data);
    for (std::int64_t i = 0; i < elements; ++i) values[i] = value<T>(rank, i);
  });
}

void spoil(DType dtype, std::byte* data, std::int64_t elements) {
  with_type(dtype, [&]<typename T>(T) { std::fill_n(reinterpret_cast<T*>(data), elements, T{}); });
}

void check(DType dtype, const std::byte* data, const Layout& layout, int ranks, bool all, const std::string& what) {
  with_type(dtype, [&]<typename T>(T) {
    std::int64_t begin = 0;
    for (const Stretch& stretch : layout.output) {
      check_stretch(reinterpret_cast<const T*>(data), stretch, begin, ranks, all, what);
      begin += stretch.count;
    }
  });
}

}  // namespace convoy::bench

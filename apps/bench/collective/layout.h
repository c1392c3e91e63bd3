// What a rank brings to a collective and what it must end with: the meaning of each operation, for every library alike.
//
// Words: rank r's input holds at place i the number value(r, i), small whole numbers that differ by rank and place, so
// that sums are exact in every element type. A *stretch* of an output is either a copy of some rank's input or the sum
// of all ranks' inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "convoy/base/dtype.h"
#include "convoy/spec/schedule/schedule.h"

namespace convoy::bench {

/// Elements of an output that have one origin.
struct Stretch {
  /// How many.
  std::int64_t count = 0;
  /// The rank whose input they are; -1 when they are sums over all ranks.
  int rank = -1;
  /// The place of the first in the inputs.
  std::int64_t place = 0;
};

/// One rank's part of a collective.
struct Layout {
  /// Elements of the rank's input.
  std::int64_t input = 0;
  /// Whether the output is the input's memory.
  bool in_place = false;
  /// The output, in order.
  std::vector<Stretch> output;

  /// Returns the output's elements.
  std::int64_t output_elements() const;
};

/// Returns a rank's part of a schedule's operation.
Layout layout_of(const spec::Schedule& schedule, int rank);

/// Returns a rank's part where everything divides evenly, as other libraries see it; the root is rank 0. All-to-all:
/// `elements` are what each rank brings.
Layout even_layout(const std::string& op, int rank, int ranks, std::int64_t elements);

/// Writes rank `rank`'s values.
void fill(DType dtype, std::byte* data, std::int64_t elements, int rank);

/// Writes what no output holds.
void spoil(DType dtype, std::byte* data, std::int64_t elements);

/// Checks an output, all of it or some places in every part of it.
/// Errors:     kFailed naming the first wrong element
void check(DType dtype, const std::byte* data, const Layout& layout, int ranks, bool all, const std::string& what);

}  // namespace convoy::bench

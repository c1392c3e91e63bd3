// A division of samples by a value that each of them has: what slices are made by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::eval {

/// A division of the evaluated samples: a column of the data, ranges of time, source files.
struct SliceColumn {
  /// What divides them, for example "job".
  std::string name;
  /// The names of its values.
  std::vector<std::string> values;
  /// The value of each sample in order, as its number in `values`; -1 when the sample has none.
  std::vector<std::int32_t> value_of;
};

}  // namespace convoy::eval

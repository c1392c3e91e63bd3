// What a rank's output holds by the definition of its collective, and shapes that try every algorithm.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "convoy/spec/collectives/registry.h"

namespace convoy::comm {

/// Elements of a buffer.
using Numbers = std::vector<std::int64_t>;

/// Values that differ by rank, input and element; sums of them wrap round, in any order alike.
inline std::int64_t value(int rank, int input, std::int64_t element) {
  return (rank + 1) * 1000003 + input * 7919 + element * element * 31;
}

/// What a rank's output holds by the definition of the collective.
inline Numbers expected(const spec::Schedule& schedule, const spec::CollectiveShape& shape, int rank,
                        std::int64_t (*value)(int rank, int input, std::int64_t element) = value) {
  const auto r = static_cast<std::size_t>(rank);
  Numbers output;
  const auto sum = [&](std::int64_t element) {
    std::int64_t total = 0;
    for (int from = 0; from < shape.ranks; ++from) {
      for (int k = 0; k < schedule.inputs[static_cast<std::size_t>(from)]; ++k) total += value(from, k, element);
    }
    return total;
  };
  std::int64_t begin = 0;
  for (std::size_t before = 0; before < r; ++before) begin += schedule.output_elements[before];
  if (schedule.collective == "all_reduce" || (schedule.collective == "reduce" && rank == shape.root)) {
    for (std::int64_t e = 0; e < schedule.elements; ++e) output.push_back(sum(e));
  } else if (schedule.collective == "reduce_scatter") {
    for (std::int64_t e = 0; e < schedule.output_elements[r]; ++e) output.push_back(sum(begin + e));
  } else if (schedule.collective == "broadcast") {
    for (std::int64_t e = 0; e < schedule.elements; ++e) output.push_back(value(shape.root, 0, e));
  } else if (schedule.collective == "scatter") {
    for (std::int64_t e = 0; e < schedule.output_elements[r]; ++e) output.push_back(value(shape.root, 0, begin + e));
  } else if (schedule.collective == "all_gather" || (schedule.collective == "gather" && rank == shape.root)) {
    for (int from = 0; from < shape.ranks; ++from) {
      for (std::int64_t e = 0; e < shape.parts[static_cast<std::size_t>(from)]; ++e) {
        output.push_back(value(from, 0, e));
      }
    }
  } else if (schedule.collective == "all_to_all") {
    for (int from = 0; from < shape.ranks; ++from) {
      const Numbers& row = shape.counts[static_cast<std::size_t>(from)];
      const std::int64_t first = std::accumulate(row.begin(), row.begin() + rank, std::int64_t{0});
      for (std::int64_t e = 0; e < row[r]; ++e) output.push_back(value(from, 0, first + e));
    }
  }
  return output;
}

/// A shape that an algorithm is tried with: pipelined where it can be, over several hosts, with replicas dealt unevenly.
inline spec::CollectiveShape shape_of(const spec::Algorithm& algorithm, int ranks, std::int64_t elements) {
  spec::CollectiveShape shape;
  shape.ranks = ranks;
  shape.elements = algorithm.name == "bruck" ? elements / 16 * ranks : elements;
  shape.root = ranks / 2;
  shape.options.chunk_elements = 1 + elements / 5;
  for (int rank = 0; rank < ranks; ++rank) shape.hosts.push_back(rank / 3);
  if (algorithm.ordered) shape.layout = {ranks + 2, spec::deal_replicas(ranks + 2, ranks)};
  return spec::with_defaults(shape);
}

}  // namespace convoy::comm

// Select: which algorithm and chunk size is the cheapest for an operation, by the price of its schedule.
//
// It prices schedules that the builders of spec make, so unlike price.h it needs them and their errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/law/price.h"
#include "convoy/spec/collectives/registry.h"

namespace convoy::law {

/// What to choose for.
struct SelectOptions {
  /// Bytes of an element.
  std::int64_t element_bytes = 4;
  /// Only algorithms whose bits do not depend on who carries which replica.
  bool reproducible = false;
  /// Chunk sizes to try with pipelined algorithms, in bytes; one message is always tried.
  std::vector<std::int64_t> chunk_bytes = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
};

/// One way to do an operation.
struct Choice {
  /// The algorithm.
  std::string algorithm;
  /// Elements of a chunk; 0 where nothing is cut.
  std::int64_t chunk_elements = 0;
  /// Whether the ranks of each host follow each other in its order; else they are in rank order.
  bool by_host = false;
  /// Its price.
  double seconds = 0;
};

/// Returns every way that the shape and the options allow, the cheapest first; of equal prices the first algorithm of
/// the registry.
/// Errors:     kInvalidArgument for an unknown collective
std::vector<Choice> rank_choices(const std::string& collective, const spec::CollectiveShape& shape,
                                 const Machine& machine, const SelectOptions& options = {});

/// A row of the table: what to choose from `from_bytes` on, until the next row.
struct SelectionRow {
  /// The fewest bytes.
  std::int64_t from_bytes = 0;
  /// What to choose.
  Choice choice;
};

/// What to choose for one collective on one machine, by bytes.
struct SelectionTable {
  /// The operation.
  std::string collective;
  /// How many ranks, on how many hosts.
  int ranks = 1;
  int hosts = 1;
  /// Bytes ascending; rows that choose the same are joined.
  std::vector<SelectionRow> rows;
  /// Returns the choice for a number of bytes.
  const Choice& choose(std::int64_t bytes) const;
};

/// Makes the table from the cheapest choices at the given sizes, ascending. What the shape says besides elements holds
/// for every row; hosts are the machine's.
/// Errors:     kInvalidArgument for an unknown collective, or without sizes
SelectionTable make_selection_table(const std::string& collective, spec::CollectiveShape shape, const Machine& machine,
                                    const std::vector<std::int64_t>& sizes_bytes, const SelectOptions& options = {});

/// Returns the table for people.
std::string to_string(const SelectionTable& table);

}  // namespace convoy::law

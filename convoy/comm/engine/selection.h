// Selection: which algorithm a group runs for an operation of so many bytes, by prices or by rules that are built in.
//
// Every rank chooses for itself, by the same pure function of the same arguments: options that the ranks share, the shape,
// the element type. A table is made of prices at a few sizes only, once for each operation and layout. With many ranks a
// price costs more than it brings.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "convoy/comm/group.h"
#include "convoy/law/select.h"

namespace convoy::comm {

/// Stands for the group's own choice in SelectionOptions::algorithm.
inline constexpr const char* kAutoAlgorithm = "auto";

/// With more ranks than this nothing is priced: the built-in rules choose.
inline constexpr int kMostPricedRanks = 64;

/// Returns what a group of so many ranks chooses from by price: sizes up to 32 MiB, and a few chunk sizes that grow with
/// the ranks where every rank has a shard of each chunk. Hosts are the machine's.
/// Cost:       a price for each algorithm, chunk size and size; more than kMostPricedRanks ranks take seconds
/// Errors:     kInvalidArgument for an unknown collective
law::SelectionTable selection_table(const std::string& collective, const spec::CollectiveShape& shape,
                                    const law::Machine& machine, std::int64_t element_bytes, bool reproducible);

/// Refuses what no group of so many ranks can do.
/// Errors:     kInvalidArgument naming an unknown algorithm and the nearest, one whose bits depend on the ranks in
///             reproducible mode, or hosts of another number of ranks
void check_selection(const SelectionOptions& options, int ranks);

/// What one group chooses.
/// Threads:    one caller at a time
class Selection {
 public:
  /// For `ranks` ranks. Those that share memory on one host are not priced: that sums are stored into all outputs at once
  /// has no price in the model.
  /// Errors:     as check_selection
  Selection(int ranks, bool shares_memory, SelectionOptions options);

  /// Returns the host of each rank; empty for one.
  const spec::HostOfRank& hosts() const { return options_.hosts; }
  /// Returns the choice for an operation; `seconds` is 0 where no price decided. What the shape says of hosts, chunks and
  /// order is not looked at.
  /// Errors:     kInvalidArgument when the algorithm that the options name does not fit the shape
  law::Choice choose(const std::string& collective, const spec::CollectiveShape& shape, DType dtype, ReduceOp reduce);
  /// Returns the schedule of the choice.
  spec::Schedule build(const std::string& collective, spec::CollectiveShape shape, DType dtype, ReduceOp reduce);

 private:
  law::Choice overridden(const spec::CollectiveShape& shape, DType dtype) const;
  law::Choice built_in(const std::string& collective, const spec::CollectiveShape& shape, DType dtype,
                       ReduceOp reduce) const;
  const law::SelectionTable& table(const std::string& collective, const spec::CollectiveShape& shape, DType dtype);

  const int ranks_;
  const SelectionOptions options_;
  const int hosts_;
  const bool priced_;
  std::vector<std::pair<std::string, law::SelectionTable>> tables_;
};

}  // namespace convoy::comm

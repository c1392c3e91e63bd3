// What can be asked of an algorithm beyond sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace convoy::spec {

/// How an algorithm lays out its messages. Neither choice changes who ends with which elements.
struct CollectiveOptions {
  /// The most elements of a message of pipelined algorithms, or of a segment of those that work by segments (hierarchies,
  /// the ordered exchange); 0 means that nothing is cut.
  /// Smaller chunks overlap more and cost more messages.
  std::int64_t chunk_elements = 0;
  /// The rank at each position of a ring or tree; empty means 0, 1, 2 ... See host_major_order and round_robin_order for
  /// rings that are laid out well and badly on hosts.
  std::vector<int> order;
};

}  // namespace convoy::spec
